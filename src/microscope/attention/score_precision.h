// The precision in which a pass multiplied queries and keys: scores recomputed from them then equal
// those of the pass, up to the order of sums.
#pragma once

#include "base/bf16.h"
#include "kernels/operands.h"

namespace heed {

// Attention in passes of up to three positions always runs in f32 (kernels/operands.h).
inline kernels::Precision score_precision(const kernels::AttentionInput<float>& input) {
  constexpr std::int64_t most_in_f32 = 3;
  const std::int64_t positions = input.positions > 0 ? input.positions : input.query.extent(1);
  return positions <= most_in_f32 ? kernels::Precision::f32 : input.precision;
}

// An element of query or key, rounded to that precision.
inline float rounded_to(kernels::Precision precision, float value) {
  return precision == kernels::Precision::bf16 ? bf16_to_f32(f32_to_bf16(value)) : value;
}

}  // namespace heed
