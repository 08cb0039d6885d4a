// The views of `heed lens`: the logit lens, the parts of a logit and of the final residual stream,
// and the nearest words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/model_options.h"
#include "cli/result_file.h"
#include "cli/terminal/terminal.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/logit_lens.h"
#include "microscope/explain/residual_parts.h"
#include "microscope/explain/word_directions.h"

namespace heed::cli {

// A text, or the target of a translator.
struct ExplainedText {
  const LoadedModel& model;
  std::vector<std::int32_t> tokens;
  std::string changes{};  // InterventionOptions::summary()

  std::string name(std::int32_t token) const;  // “␣mole”
  std::string caption() const { return figure_caption(model, tokens, changes); }
  // "  changed: ablate L2H3\n", for after a title; empty for none.
  std::string changes_line(const Ink& ink) const;
};

struct LensRequest {
  LensOptions options;
  std::optional<std::int32_t> token;  // shown instead of the most likely
};
void print_lens(const ExplainedText& text, const LensRequest& request, const LogitLens& lens);
OrderedJson lens_json(const ExplainedText& text, const LogitLens& lens);
void write_lens(const std::string& path, const ExplainedText& text, const LensRequest& request,
                const LogitLens& lens);

void print_attribution(const ExplainedText& text, const Attribution& attribution, std::size_t top);
OrderedJson attribution_json(const ExplainedText& text, const Attribution& attribution);
void write_attribution(const std::string& path, const ExplainedText& text,
                       const Attribution& attribution);

struct InputAttribution {
  LogitQuestion question;
  std::string baseline;  // "embeddings of zero"
  IntegratedGradients found;
};
void print_integrated(const ExplainedText& text, const InputAttribution& attribution);
OrderedJson integrated_json(const ExplainedText& text, const InputAttribution& attribution);
void write_integrated(const std::string& path, const ExplainedText& text,
                      const InputAttribution& attribution);

void print_residual(const ExplainedText& text, const ResidualParts& residual, std::size_t top);
OrderedJson residual_json(const ResidualParts& residual);
void write_residual(const std::string& path, const ExplainedText& text,
                    const ResidualParts& residual, std::size_t top);

void print_nearest(const ExplainedText& text, const NearestWordsByDepth& found);

// "the logit of “␣mole” minus that of “␣bank”".
std::string question_text(const ExplainedText& text, const LogitQuestion& question);

}  // namespace heed::cli
