// Induction (Olsson et al. 2022): in a random sequence that is repeated, the second half can be
// predicted from the first by a head that attends to what followed the same token before. It needs
// another head, in an earlier layer, that attends to the previous token.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "model/editor.h"
#include "model/transformer.h"

namespace heed {

struct InductionOptions {
  std::int64_t sequences = 16;
  std::int64_t length = 0;  // R tokens, repeated once; 0: half the context, at most 64
  std::uint64_t seed = 1;
  Editor* editor = nullptr;  // changes the passes that are measured
  bool control = true;       // also measure shuffled sequences; without, no head is significant
  StopFlag stop = nullptr;   // looked at before every sequence
};

inline constexpr std::int64_t max_induction_sequences = 100'000;

struct HeadScore {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double score = 0;
  double standard_error = 0;  // of score − control, over the sequences
  double control = 0;         // what the score is compared with
  double uniform = 0;         // the score of uniform attention in this layer
  bool is_significant = false;
};

// A score is significant if it exceeds its control by more than five standard errors over at least
// eight sequences, and is more than twice the score of uniform attention. The first keeps out
// chance: with 16 sequences, a head without the effect passes once in 12,000. The second keeps out
// effects that are real but too small to matter.
struct InductionMeasure {
  std::int64_t length = 0;
  // Mean weights, a head each, layer by layer. Induction: over the queries of the second half, on
  // the token after the first occurrence of the query's token, R - 1 back; its control is the same
  // with the second half shuffled, so that attention by position alone is not significant.
  // Previous: over all queries but the first, on the previous token; its control is uniform
  // attention.
  std::vector<HeadScore> induction;
  std::vector<HeadScore> previous;
  // Scores of uniform attention: the largest of the layers, which differ where they have windows.
  double uniform_induction = 0;
  double uniform_previous = 0;
  // Mean loss in nats of the tokens of each half but its first: nothing helps in the first, whose
  // loss is at best log V.
  double first_half_loss = 0;
  double repeated_half_loss = 0;

  const HeadScore& best_induction() const;  // the largest score, significant or not
  const HeadScore& best_previous() const;
  std::optional<HeadScore> induction_head() const;  // the largest significant score
  std::optional<HeadScore> previous_head() const;
};

// Sequences of tokens drawn uniformly from the model's vocabulary without its end-of-text token,
// and different from each other as long as there are enough; each sequence twice. Throws
// Error{invalid_argument} where two lengths do not fit the context, Error{interrupted} when
// stopped.
InductionMeasure measure_induction(const Transformer& model, const InductionOptions& options = {});

// The effect of the circuit: the same measure without the induction head, and with the
// previous-token head's edges from each token to the previous one cut. Absent where there is no
// such head.
struct InductionCircuit {
  InductionMeasure whole;
  std::optional<double> loss_without_induction_head;  // of the repeated half
  std::optional<double> loss_without_previous_edges;
};
InductionCircuit measure_induction_circuit(const Transformer& model,
                                           const InductionOptions& options = {});

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
