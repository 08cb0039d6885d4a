// The views of `heed lens`: the logit lens, and what a logit is made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/model_options.h"
#include "cli/result_file.h"
#include "microscope/attribution.h"
#include "microscope/logit_gradients.h"
#include "microscope/logit_lens.h"

namespace heed::cli {

// A text that is explained.
struct ExplainedText {
  const LoadedModel& model;
  std::vector<std::int32_t> tokens;

  std::string name(std::int32_t token) const;  // as people see it: “␣mole”
};

// The one token that `text` is, or the id 17 written as #17. Throws Error{invalid_argument} naming
// `option` and the tokens where there are several.
std::int32_t single_token(const LoadedModel& model, const std::string& text,
                          const std::string& option);

struct LensRequest {
  LensOptions options;
  std::optional<std::int32_t> token;  // followed, rather than the likeliest
};
void print_lens(const ExplainedText& text, const LensRequest& request, const LogitLens& lens);
OrderedJson lens_json(const ExplainedText& text, const LogitLens& lens);
void write_lens(const std::string& path, const ExplainedText& text, const LensRequest& request,
                const LogitLens& lens);

void print_attribution(const ExplainedText& text, const Attribution& attribution, std::size_t top);
OrderedJson attribution_json(const ExplainedText& text, const Attribution& attribution);
void write_attribution(const std::string& path, const ExplainedText& text,
                       const Attribution& attribution);

void print_integrated(const ExplainedText& text, const LogitQuestion& question,
                      const IntegratedGradients& integrated);
OrderedJson integrated_json(const ExplainedText& text, const LogitQuestion& question,
                            const IntegratedGradients& integrated);
void write_integrated(const std::string& path, const ExplainedText& text,
                      const LogitQuestion& question, const IntegratedGradients& integrated);

// "the logit of “␣mole” over “␣bank”".
std::string question_text(const ExplainedText& text, const LogitQuestion& question);

}  // namespace heed::cli
