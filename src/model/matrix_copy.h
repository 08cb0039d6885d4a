// Copies between matrices whose rows are dense but may be apart: columns of a wider matrix, one
// head of several.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/view.h"

namespace heed {

// to (N, W) = from (N, W)
inline void copy_matrix(View<const float> from, View<float> to) {
  for (std::int64_t row = 0; row < from.extent(0); ++row) {
    std::copy_n(&from(row, 0), from.extent(1), &to(row, 0));
  }
}

}  // namespace heed
