// The options of commands that read a source and a target: `heed attend`, `trace`, `lens` and
// `patch`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "engine/loaded_model.h"

namespace heed::cli {

// The second text. Of a model of one stack none is given.
struct PairOptions {
  std::optional<std::string> target;
  std::string target_tokens;

  bool any() const { return target || !target_tokens.empty(); }
};

// --target and --target-tokens; `default_target` is what is read without them.
void add_target_options(Command command, PairOptions& options,
                        const std::string& default_target = "the model's greedy translation");
// Without --model, what only a translator can do is done by the one that heed carries.
void choose_translator(Command command, std::string& model);

// Throws Error{invalid_argument} where an option of pairs is given for a model of one stack.
void require_no_pair_options(const PairOptions& options, const LoadedModel& model);

// What the decoder reads, of one of the two options. Throws Error{invalid_argument} for both.
std::vector<std::int32_t> read_target(const PairOptions& options, const LoadedModel& model);

// The text of a model of one text; of a translator, the source of `text` and the target, which is
// the model's own translation where none is given. Throws Error{invalid_argument} for texts that do
// not fit the model, and for a target of a model of one text.
ModelTexts read_texts(const TextOptions& text, const PairOptions& options,
                      const LoadedModel& model);

}  // namespace heed::cli
