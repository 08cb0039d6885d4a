// Measures of the model's distribution over the next token, from its candidates.
#pragma once

#include <span>

#include "generate/sampler.h"

namespace heed {

// In nats; between 0, one token being certain, and the logarithm of the number of candidates.
double entropy_nats(std::span<const Candidate> candidates);

// KL(before ‖ after) in nats, infinite where `after` rules out what `before` does not. Both are of
// the same vocabulary, in any order: token ids are below their number.
double divergence_nats(std::span<const Candidate> before, std::span<const Candidate> after);

}  // namespace heed
