// Vectors of bf16 pairs, made from f32, as AVX-512 BF16 and AMX multiply them. A word is a pair of
// bf16. For code between HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS) and HWY_POP_ATTRIBUTES. x86-64
// only.
#pragma once

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/bf16_instructions.h"

#define HEED_INLINE __attribute__((always_inline)) inline

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)
namespace heed::kernels {

// Masks the first `count` of 16 lanes.
HEED_INLINE __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, 16)) - 1);
}

// Transposes 16 rows of 16 words.
HEED_INLINE void transpose_words(__m512i (&rows)[16]) {
  __m512i pair[16], quad[16];
  for (int i = 0; i < 16; i += 2) {
    pair[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    pair[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    quad[i] = _mm512_unpacklo_epi64(pair[i], pair[i + 2]);
    quad[i + 1] = _mm512_unpackhi_epi64(pair[i], pair[i + 2]);
    quad[i + 2] = _mm512_unpacklo_epi64(pair[i + 1], pair[i + 3]);
    quad[i + 3] = _mm512_unpackhi_epi64(pair[i + 1], pair[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512i low = _mm512_shuffle_i32x4(quad[i], quad[i + 4], 0x88);
    const __m512i high = _mm512_shuffle_i32x4(quad[i], quad[i + 4], 0xDD);
    const __m512i low2 = _mm512_shuffle_i32x4(quad[i + 8], quad[i + 12], 0x88);
    const __m512i high2 = _mm512_shuffle_i32x4(quad[i + 8], quad[i + 12], 0xDD);
    rows[i] = _mm512_shuffle_i32x4(low, low2, 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(low, low2, 0xDD);
    rows[i + 4] = _mm512_shuffle_i32x4(high, high2, 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(high, high2, 0xDD);
  }
}

// 16 words of neighbouring numbers: the 8 pairs of `low`, then those of `high`. Rounds to nearest.
HEED_INLINE __m512i neighbour_words(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// 16 words (low[i], high[i]). Rounds to nearest.
HEED_INLINE __m512i paired_words(__m512 low, __m512 high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, neighbour_words(low, high));
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES
