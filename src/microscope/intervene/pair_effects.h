// What changes in an encoder-decoder: by interventions, in the next token and in the translation;
// by another word, in the vectors of both texts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {

// The greedy translation of a source: the most likely token each time.
struct GreedyTranslation {
  std::vector<std::int32_t> tokens;   // without the decoder's start and without the end
  std::optional<std::int32_t> end{};  // nothing: it was cut off
  double log_probability = 0;         // of the tokens, and of the end where there is one

  bool is_finished() const { return end.has_value(); }
};
struct GreedyOptions {
  std::int64_t max_length = 0;  // tokens; 0: as many as the context holds
  Editor* editor = nullptr;     // edits both stacks at every step; or null
  Probe* probe = nullptr;       // observes them
  StopFlag stop = nullptr;
};
// Throws Error{invalid_argument} for a source that does not fit the encoder, and Error{interrupted}
// when stopped.
GreedyTranslation translate_greedily(const Transformer& model, std::span<const std::int32_t> source,
                                     const GreedyOptions& options = {});

// The target of a translation as the decoder reads it: its start, then the tokens.
std::vector<std::int32_t> decoder_input(const Architecture& architecture,
                                        std::span<const std::int32_t> tokens);

// What an edited pass changes after one position, against the same texts without edits.
struct PredictionEffect {
  // Total variation distance of the distributions of the next token, ½ Σ |p − p′|: 0 changes
  // nothing, 1 everything.
  double moved = 0;
  std::optional<std::int32_t> next;  // the token that follows in the text, if any
  double before = 0;                 // its probability
  double after = 0;
};
// At every position of the text, or of the target, which both have. Throws Error{interrupted} when
// stopped.
std::vector<PredictionEffect> prediction_effects(const RecordedPass& unedited,
                                                 const RecordedPass& edited,
                                                 StopFlag stop = nullptr);

// How far each vector at the end of a stack moves when one token becomes another: ‖after − before‖
// / ‖before‖; exactly 0 where not a bit changes. Without a mask, a token moves all vectors of its
// text, also those before it; with a causal mask, none before it.
struct TokenInfluence {
  std::vector<double> encoder;  // (M)
  std::vector<double> decoder;  // (T)
};
TokenInfluence token_influence(const RecordedPass& pass, PairSide side, std::int64_t position,
                               std::int32_t token);

}  // namespace heed
