// The keys that a query attends to, as the mask of a layer says.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

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

}  // namespace heed
