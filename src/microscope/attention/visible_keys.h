// The keys that a query attends to, as the mask of a layer says, and how scores are computed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/bf16.h"
#include "kernels/operands.h"
#include "model/architecture.h"

namespace heed {

// [begin, end) of a memory.
struct VisibleKeys {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t count() const { return end - begin; }
  bool contains(std::int64_t key) const { return key >= begin && key < end; }
};

// Of the query at `position`, in a memory of `memory` positions.
inline VisibleKeys visible_keys(const AttentionSpecification& attention, std::int64_t layer,
                                std::int64_t position, std::int64_t memory) {
  if (attention.mask.kind == MaskKind::full) return {0, memory};
  const std::int64_t window = attention.window(layer);
  return {window > 0 ? std::max<std::int64_t>(position + 1 - window, 0) : 0,
          std::min(position + 1, memory)};
}

// A score of the product query · key.
inline double score_of(const AttentionSpecification& attention, double product) {
  const double scaled = product * double{attention.score_scale()};
  const double cap = attention.soft_cap;
  return cap > 0 ? cap * std::tanh(scaled / cap) : scaled;
}

// The precision in which a pass multiplied queries and keys: scores recomputed from them then equal
// those of the pass, up to the order of sums. Attention in passes of up to
// three positions always runs in f32 (kernels/operands.h).
inline kernels::Precision score_precision(const kernels::AttentionInput<float>& input) {
  constexpr std::int64_t max_in_f32 = 3;
  const std::int64_t positions = input.positions > 0 ? input.positions : input.query.extent(1);
  return positions <= max_in_f32 ? kernels::Precision::f32 : input.precision;
}

// An element of query or key, rounded to that precision.
inline float rounded_to(kernels::Precision precision, float value) {
  return precision == kernels::Precision::bf16 ? bf16_to_f32(f32_to_bf16(value)) : value;
}

}  // namespace heed
