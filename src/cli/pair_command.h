// `heed attend` and `heed trace` of an encoder-decoder: a source and a target.
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

// The second text. Of a model of one stack none is given.
struct PairOptions {
  std::optional<std::string> target;
  std::string target_tokens;

  bool any() const { return target || !target_tokens.empty(); }
};

// --target and --target-tokens.
void add_target_options(Command command, PairOptions& options);
// Without --model, what only a translator can do is done by the one that heed carries: `needed`
// says whether the call asks for such a thing.
void choose_pair_model(Command command, bool needed, std::string& model);

// Throws Error{invalid_argument} where an option of pairs is given for a model of one stack.
void require_no_pair_options(const PairOptions& options, const std::string& model);

// The source of `text` and the target, which is the model's own translation where none is given.
// Throws Error{invalid_argument} for texts that do not fit the model.
PairTexts read_pair(const TextOptions& text, const PairOptions& options, const PairModel& model);

struct PairAttendOptions {
  PairOptions pair;
  InterventionOptions interventions;
  std::string kind;  // empty: all, or cross where a head is chosen
  std::optional<std::int64_t> layer;
  std::optional<std::int64_t> head;
  std::string word;
  std::int64_t occurrence = 0;
  std::size_t top = 0;
  bool words = false;
  bool json = false;
};
void attend_pair(const PairModel& model, const TextOptions& text, const PairAttendOptions& options);

}  // namespace heed::cli
