// The dropout mask: a counter-based hash, bit-identical in every implementation.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/operands.h"

namespace heed::kernels {

// Weyl increment 2^32/φ between columns: neighbouring columns differ in many bits.
inline constexpr std::uint32_t dropout_column_step = 0x9E3779B9U;

inline constexpr std::uint64_t dropout_row_step = 0x9E3779B97F4A7C15U;

// The mask of which row 0 is row `first` of this one.
inline Dropout from_row(const Dropout& dropout, std::int64_t first) {
  return {.rate = dropout.rate,
          .key = dropout.key + static_cast<std::uint64_t>(first) * dropout_row_step,
          .first_column = dropout.first_column};
}

// One hash a row: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over key and row; and the
// step to the first column.
inline std::uint32_t dropout_row_key(const Dropout& dropout, std::uint64_t row) {
  std::uint64_t mixed = dropout.key + (row + 1) * dropout_row_step;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return static_cast<std::uint32_t>(mixed ^ (mixed >> 31)) +
         dropout.first_column * dropout_column_step;
}

// 24 bits an element: Wellons' "lowbias32" permutation of row key and column.
inline std::uint32_t dropout_bits(std::uint32_t row_key, std::uint32_t column) {
  std::uint32_t mixed = row_key + column * dropout_column_step;
  mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352DU;
  mixed = (mixed ^ (mixed >> 15)) * 0x846CA68BU;
  return (mixed ^ (mixed >> 16)) >> 8;
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
