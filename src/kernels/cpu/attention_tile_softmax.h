// Softmax between two tile products of attention: squares of 32 keys (rows) by 32 queries (lanes).
// x86-64 only.
#pragma once

#include "kernels/cpu/bf16_tiles.h"
#include "kernels/dropout_hash.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {

// The mask of a square: key i is visible to query j if i < keys and j >= i + diagonal.
struct SquarePlace {
  std::int64_t keys;
  std::int64_t diagonal;
  bool cut() const { return keys < square_side || diagonal + square_side - 1 > 0; }
  bool empty() const { return keys <= 0; }

  HEED_INLINE __mmask16 visible(std::int64_t row, std::int64_t half) const {
    if (row >= keys) return 0;
    const std::int64_t hidden = std::clamp<std::int64_t>(row + diagonal - half * 16, 0, 16);
    return static_cast<__mmask16>(0xFFFFU << hidden);
  }
};

HEED_INLINE SquarePlace place_square(const Head& head, std::int64_t query, std::int64_t key) {
  const std::int64_t end =
      std::min(head.memory, head.visible + std::min(query + square_side, head.queries));
  return {std::min(end - key, square_side), key - head.visible - query};
}

// Dropout inside a square: lanes are rows of dropout's matrix, keys its columns.
struct SquareDropout {
  __m512i row_keys[2];
  __m512i threshold;

  SquareDropout() = default;
  HEED_INLINE SquareDropout(const Head& head, std::int64_t query) {
    alignas(64) std::uint32_t keys[square_side];
    for (std::int64_t j = 0; j < square_side; ++j) {
      keys[j] =
          dropout_row_key(head.dropout, static_cast<std::uint64_t>(head.first_row + query + j));
    }
    row_keys[0] = _mm512_load_si512(keys);
    row_keys[1] = _mm512_load_si512(keys + 16);
    threshold = _mm512_set1_epi32(static_cast<int>(dropout_threshold(head.dropout.rate)));
  }

  // dropout_bits() of dropout_hash.h for 16 rows.
  HEED_INLINE __mmask16 kept(std::int64_t half, std::int64_t key) const {
    const std::uint32_t column = static_cast<std::uint32_t>(key) * dropout_column_step;
    const auto mix = [&](__m512i mixed, int factor) {
      return _mm512_mullo_epi32(mixed, _mm512_set1_epi32(factor));
    };
    __m512i mixed = _mm512_add_epi32(row_keys[half], _mm512_set1_epi32(static_cast<int>(column)));
    mixed = mix(_mm512_xor_si512(mixed, _mm512_srli_epi32(mixed, 16)), 0x7FEB352D);
    mixed =
        mix(_mm512_xor_si512(mixed, _mm512_srli_epi32(mixed, 15)), static_cast<int>(0x846CA68BU));
    mixed = _mm512_srli_epi32(_mm512_xor_si512(mixed, _mm512_srli_epi32(mixed, 16)), 8);
    return _mm512_cmpge_epu32_mask(mixed, threshold);
  }
};

// 16 × 16 floats of a transposed result, rows `square_side` apart.
struct TurnedSquare {
  __m512i rows[16];

  HEED_INLINE explicit TurnedSquare(const float* from) {
    for (int i = 0; i < 16; ++i) rows[i] = _mm512_loadu_si512(from + i * square_side);
    transpose_words(rows);
  }
  HEED_INLINE __m512 row(std::int64_t i) const { return _mm512_castsi512_ps(rows[i]); }
};

}  // namespace heed::kernels

HWY_POP_ATTRIBUTES
