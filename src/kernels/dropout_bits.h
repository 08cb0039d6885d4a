// The arithmetic of the dropout mask, of integers alone: the same on every processor and device.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__) || defined(__CUDA__)
#define HEED_HOST_DEVICE __host__ __device__
#else
#define HEED_HOST_DEVICE
#endif

namespace heed::kernels {

// Weyl increment 2^32/φ between columns: neighbouring columns differ in many bits.
inline constexpr uint32_t dropout_column_step = 0x9E3779B9U;

inline constexpr uint64_t dropout_row_step = 0x9E3779B97F4A7C15U;

// One hash a row: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over key and row; and the
// step to the first column.
HEED_HOST_DEVICE inline uint32_t dropout_row_key(uint64_t key, uint32_t first_column,
                                                 uint64_t row) {
  uint64_t mixed = key + (row + 1) * dropout_row_step;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return static_cast<uint32_t>(mixed ^ (mixed >> 31)) + first_column * dropout_column_step;
}

// 24 bits an element: Wellons' "lowbias32" permutation of row key and column.
HEED_HOST_DEVICE inline uint32_t dropout_bits(uint32_t row_key, uint32_t column) {
  uint32_t mixed = row_key + column * dropout_column_step;
  mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352DU;
  mixed = (mixed ^ (mixed >> 15)) * 0x846CA68BU;
  return (mixed ^ (mixed >> 16)) >> 8;
}

}  // namespace heed::kernels
