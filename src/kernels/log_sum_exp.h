// The normaliser of a softmax.
#pragma once

#include <span>

namespace heed::kernels {

// log Σ exp(row), natural logarithm, on the calling thread. −∞ in the row is a probability of zero;
// the result is not finite where another element is not.
float log_sum_exp(std::span<const float> row);

}  // namespace heed::kernels
