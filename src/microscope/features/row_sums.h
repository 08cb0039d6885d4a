// Sums of rows of numbers, which compilers turn into vector instructions.
#pragma once

#include <cstdint>

namespace heed {

// to += factor · from
inline void add_row(float* __restrict to, const float* __restrict from, float factor,
                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

// Σ x · y, in 16 partial sums, whose order does not depend on the machine.
inline float dot_row(const float* __restrict x, const float* __restrict y, std::int64_t count) {
  constexpr std::int64_t lanes = 16;
  float sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  for (; i < count; ++i) sums[i % lanes] += x[i] * y[i];
  float sum = 0;
  for (const float each : sums) sum += each;
  return sum;
}

}  // namespace heed
