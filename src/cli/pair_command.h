// The options of commands that read a source and a target: `heed attend`, `trace` and `lens`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/intervention_options.h"
#include "cli/model_options.h"
#include "engine/pair_model.h"

namespace heed::cli {

// The second text, and what is changed in a pass over both. Of a model of one stack none is given.
struct PairOptions {
  std::optional<std::string> target;
  std::string target_tokens;
  std::vector<std::string> ablate;
  std::vector<std::string> scale;
  std::vector<std::string> cut;
  bool renormalise = false;
  bool causal_encoder = false;

  bool any() const { return target || !target_tokens.empty() || changes_any(); }
  bool changes_any() const {
    return !ablate.empty() || !scale.empty() || !cut.empty() || causal_encoder;
  }
  std::string summary() const;  // "ablate cross.L1H2, cut cross.L0:3>2"
};

// --target and --target-tokens.
void add_target_options(Command command, PairOptions& options);
// --ablate, --scale, --cut, --renormalise and --causal-encoder, for commands that have no other
// interventions.
void add_pair_change_options(Command command, PairOptions& options);

// The options of a pair with the interventions of a command. Throws Error{invalid_argument} for
// those that a pair does not take.
PairOptions pair_changes(PairOptions options, const InterventionOptions& interventions);

// Without --model, what only a translator can do is done by the one that heed carries.
void choose_pair_model(Command command, std::string& model);

// Throws Error{invalid_argument} where an option of pairs is given for a model of one stack.
void require_no_pair_options(const PairOptions& options, const std::string& model);

// The source of `text` and the target, which is the model's own translation where none is given.
// Throws Error{invalid_argument} for texts that do not fit the model.
PairTexts read_pair(const TextOptions& text, const PairOptions& options, const PairModel& model);

// Null for none.
std::shared_ptr<Interventions> make_pair_interventions(const PairOptions& options,
                                                       const PairModel& model, const Texts& tokens);

}  // namespace heed::cli
