// The likeliest continuations of some hypotheses, from their logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace heed {

// Which tokens may follow.
struct AllowedTokens {
  std::int64_t count;      // the first ones
  std::int32_t forbidden;  // but for this one; −1: none
};

struct BeamCandidate {
  double log_probability;  // of the hypothesis with the token
  std::int32_t token;
  std::int32_t parent;  // the hypothesis, by its row

  // Of equals, the one of the first row and the lower token goes first.
  bool goes_before(const BeamCandidate& other) const {
    if (log_probability != other.log_probability) return log_probability > other.log_probability;
    return parent != other.parent ? parent < other.parent : token < other.token;
  }
};

// The `count` likeliest continuations, the likeliest first, in `candidates`: of hypotheses with
// these log-probabilities (R) and logits (R, V) of the next token. The probability of tokens that
// may not follow is not given to the others. Throws Error{diverged} for logits that are not finite
// in sum.
void find_candidates(View<const float> logits, std::span<const double> log_probabilities,
                     const AllowedTokens& allowed, std::size_t count,
                     std::vector<BeamCandidate>& candidates);

}  // namespace heed
