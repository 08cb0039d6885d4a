// The dropout mask: a counter-based hash, bit-identical in every implementation.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/dropout_bits.h"
#include "kernels/operands.h"

namespace heed::kernels {

// The mask of which row 0 is row `first` of this one.
inline Dropout from_row(const Dropout& dropout, std::int64_t first) {
  return {.rate = dropout.rate,
          .key = dropout.key + static_cast<std::uint64_t>(first) * dropout_row_step,
          .first_column = dropout.first_column};
}

inline std::uint32_t dropout_row_key(const Dropout& dropout, std::uint64_t row) {
  return dropout_row_key(dropout.key, dropout.first_column, row);
}

// An element is kept when its 24 bits, as a fraction of 2^24, are at least the rate.
inline std::uint32_t dropout_threshold(float rate) {
  return static_cast<std::uint32_t>(std::ceil(static_cast<double>(rate) * 16777216.0));
}

// The factor of element (row, column): 0 or 1/(1 - rate).
template <class T>
T dropout_factor(const Dropout& dropout, std::int64_t row, std::int64_t column) {
  const std::uint32_t bits = dropout_bits(dropout_row_key(dropout, static_cast<std::uint64_t>(row)),
                                          static_cast<std::uint32_t>(column));
  return bits >= dropout_threshold(dropout.rate) ? T(1) / (T(1) - T(dropout.rate)) : T(0);
}

}  // namespace heed::kernels
