// Induction (Olsson et al. 2022): in a random sequence that comes twice, the second half can be
// told from the first by a head that looks for what followed the same token before. It needs
// another head, one layer down, that tells each token what came just before it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/editor.h"
#include "model/gpt.h"

namespace heed {

struct InductionOptions {
  std::int64_t sequences = 16;
  std::int64_t length = 0;  // R tokens, repeated once; 0: half the context, at most 64
  std::uint64_t seed = 1;
  Editor* editor = nullptr;  // changes the passes that are measured
};

struct HeadScore {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double score = 0;
};

struct InductionMeasure {
  std::int64_t length = 0;
  // Mean weights, a head each, layer by layer, over the queries of the second half: on the token
  // after the same token's first coming, R - 1 back; and over all queries but the first, on the one
  // just before.
  std::vector<HeadScore> induction;
  std::vector<HeadScore> previous;
  // Mean loss in nats of the tokens of each half but its first: nothing helps in the first, whose
  // loss is at best log V.
  double first_half_loss = 0;
  double repeated_half_loss = 0;

  const HeadScore& best_induction() const;
  const HeadScore& best_previous() const;
};

// Sequences of tokens drawn evenly from the model's vocabulary, its end-of-text token left out, and
// different from each other as long as there are enough; each sequence twice. Throws
// Error{invalid_argument} where two lengths do not fit the context.
InductionMeasure measure_induction(const Gpt& gpt, const InductionOptions& options = {});

// What the circuit is worth: the same measure without the best induction head, and with the best
// previous-token head's edges from each token to the one before cut, the rest kept.
struct InductionCircuit {
  InductionMeasure whole;
  double loss_without_induction_head = 0;  // of the repeated half
  double loss_without_previous_edges = 0;
};
InductionCircuit measure_induction_circuit(const Gpt& gpt, const InductionOptions& options = {});

// The two consecutive measurements between which a score rose most.
struct ScoreAtStep {
  std::int64_t step = 0;
  double score = 0;
};
struct Jump {
  ScoreAtStep before;
  ScoreAtStep after;
};
// Throws Error{invalid_argument} for fewer than two.
Jump largest_jump(const std::vector<ScoreAtStep>& scores);

}  // namespace heed
