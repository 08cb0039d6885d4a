// What a pass multiplied queries and keys in, so that scores computed from them later are the
// pass's own, up to the order of sums.
#pragma once

#include "kernels/operands.h"
#include "tensor/dtype.h"

namespace heed {

// Up to three queries are attended to in f32 whatever is asked for (kernels/operands.h).
inline kernels::Precision score_precision(const kernels::AttentionInput<float>& input) {
  constexpr std::int64_t most_in_f32 = 3;
  return input.query.extent(1) <= most_in_f32 ? kernels::Precision::f32 : input.precision;
}

// An element of query or key as products of that precision read it.
inline float rounded_to(kernels::Precision precision, float value) {
  return precision == kernels::Precision::bf16 ? bf16_to_f32(f32_to_bf16(value)) : value;
}

}  // namespace heed
