// Panels of bf16 for the two instruction sets that multiply it: elements in pairs along `inner`, as
// both want them, rounded or split while they are copied. For code between
// HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS) and HWY_POP_ATTRIBUTES.
//
// With three parts a panel holds f32: a number is the sum of three bf16, each the one nearest to
// what those before it left, to 2^-26 of it. Where `part` counts, a panel holds, for each 32 of
// `inner`, all of the first part, then all of the second, and so on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/bf16_instructions.h"
#include "kernels/cpu/product_kernels.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)
namespace heed::kernels {
namespace {

#define HEED_INLINE __attribute__((always_inline)) inline

constexpr std::int64_t panel_columns = 32;  // of B; 32 pairs are two cache lines
constexpr std::int64_t lanes = 16;          // f32 of a vector
constexpr std::int64_t step_inner = 32;     // bf16 along a row of an AMX tile
constexpr std::int64_t step_pairs = step_inner / 2;
constexpr std::int64_t line_bytes = 64;  // of a cache

// Operands lie in many short stretches, which are asked for this early.
constexpr std::int64_t rows_ahead = 24;
constexpr std::int64_t steps_ahead = 4;

std::int64_t pairs_of(std::int64_t inner) { return (inner + 1) / 2; }

// The first `count` of 16 numbers, the rest zero.
HEED_INLINE __mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, lanes)) - 1);
}

// What becomes of 16 numbers: themselves, to be rounded; or three parts that bf16 holds, the first
// two rounded to nearest, halves away from zero. What they leave of a number's 24 bits are at most
// 7, so that nothing is lost but what is denormal.
template <int parts>
struct Split {
  __m512 part[parts];
};

template <int parts>
HEED_INLINE Split<parts> split(__m512 x) {
  static_assert(parts == 1 || parts == 3);
  Split<parts> result;
  if constexpr (parts == 3) {
    const __m512i half = _mm512_set1_epi32(0x8000);
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
    for (int p = 0; p < 2; ++p) {
      const __m512i above = _mm512_add_epi32(_mm512_castps_si512(x), half);
      result.part[p] = _mm512_castsi512_ps(_mm512_and_si512(above, upper));
      x = _mm512_sub_ps(x, result.part[p]);
    }
  }
  result.part[parts - 1] = x;
  return result;
}

// 16 pairs (low, high) of bf16 from two vectors of f32 that a Split left: rounded, or as they are.
template <int parts>
HEED_INLINE __m512i pairs(__m512 low, __m512 high) {
  if constexpr (parts > 1) {
    return _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(_mm512_castps_si512(low), 16),
                                   _mm512_castps_si512(high));
  }
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// 16 neighbouring pairs, 32 numbers, as they lie.
HEED_INLINE __m512i neighbours(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// The first `count` of 32 numbers.
struct TwoVectors {
  __m512 low;
  __m512 high;
};
HEED_INLINE TwoVectors load_two(const float* from, std::int64_t count) {
  return {_mm512_maskz_loadu_ps(first(count), from),
          _mm512_maskz_loadu_ps(first(count - lanes), from + lanes)};
}

// Words from one pair to the next one of the same part are `stride`; where pair `index` begins.
template <int parts>
HEED_INLINE std::int64_t pair_offset(std::int64_t index, int part, std::int64_t stride) {
  return ((index / step_pairs * parts + part) * step_pairs + index % step_pairs) * stride;
}

// Rows k and k + 1 of a matrix whose columns are wanted as pairs: (pairs, to_stride) words from
// `from` (inner, count), zeros where inner is odd.
template <int parts>
void pair_rows(const float* from, std::int64_t from_stride, std::int64_t count, std::int64_t inner,
               std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < inner; k += 2) {
    const float* even = from + k * from_stride;
    const float* odd = even + from_stride;
    for (std::int64_t c = 0; c < count; c += lanes) {
      const __mmask16 mask = first(count - c);
      __builtin_prefetch(even + c + rows_ahead * from_stride, 0, 2);
      __builtin_prefetch(odd + c + rows_ahead * from_stride, 0, 2);
      const auto low = split<parts>(_mm512_maskz_loadu_ps(mask, even + c));
      const auto high =
          split<parts>(k + 1 < inner ? _mm512_maskz_loadu_ps(mask, odd + c) : _mm512_setzero_ps());
      for (int p = 0; p < parts; ++p) {
        _mm512_mask_storeu_epi32(to + pair_offset<parts>(k / 2, p, to_stride) + c, mask,
                                 pairs<parts>(low.part[p], high.part[p]));
      }
    }
  }
}

HEED_INLINE void transpose16(__m512i (&rows)[16]) {
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

// The transpose of that: (pairs, to_stride) words from `from` (count, inner).
template <int parts>
void pair_columns(const float* from, std::int64_t from_stride, std::int64_t count,
                  std::int64_t inner, std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < count; r += lanes) {
    const std::int64_t rows = std::min(lanes, count - r);
    for (std::int64_t k = 0; k < inner; k += step_inner) {
      __m512i block[parts][16];
      for (int i = 0; i < lanes; ++i) {
        const float* row = from + (r + i) * from_stride + k;
        __builtin_prefetch(row + steps_ahead * step_inner);
        __builtin_prefetch(row + steps_ahead * step_inner + lanes);
        const TwoVectors two = i < rows ? load_two(row, inner - k)
                                        : TwoVectors{_mm512_setzero_ps(), _mm512_setzero_ps()};
        const auto low = split<parts>(two.low), high = split<parts>(two.high);
        for (int p = 0; p < parts; ++p) block[p][i] = neighbours(low.part[p], high.part[p]);
      }
      const std::int64_t depth = std::min(step_pairs, pairs_of(inner - k));
      for (int p = 0; p < parts; ++p) {
        transpose16(block[p]);
        for (int i = 0; i < lanes && i < depth; ++i) {
          _mm512_mask_storeu_epi32(to + pair_offset<parts>(k / 2 + i, p, to_stride) + r,
                                   first(rows), block[p][i]);
        }
      }
    }
  }
}

// Zero pairs behind `inner`, up to a whole step.
template <int parts>
void fill_up(std::uint32_t* panel, std::int64_t stride, std::int64_t inner) {
  const std::int64_t filled = pairs_of(inner), missing = -filled & (step_pairs - 1);
  for (int p = 0; p < parts && missing > 0; ++p) {
    std::memset(panel + pair_offset<parts>(filled, p, stride), 0,
                sizeof(*panel) * static_cast<std::size_t>(missing * stride));
  }
}

// Columns of B as (inner/32, parts, 16, 32, 2), zero behind count and inner.
template <int parts>
void pack_b(const ProductOperand& b, const PanelRange& range, void* panel) {
  auto* const to = static_cast<std::uint32_t*>(panel);
  if (range.count < panel_columns) {
    const std::int64_t steps = (range.inner + step_inner - 1) / step_inner;
    std::memset(to, 0,
                sizeof(*to) * static_cast<std::size_t>(steps * parts * step_pairs * panel_columns));
  }
  if (b.transposed) {
    pair_columns<parts>(b.data + range.first * b.stride + range.k, b.stride, range.count,
                        range.inner, to, panel_columns);
  } else {
    pair_rows<parts>(b.data + range.k * b.stride + range.first, b.stride, range.count, range.inner,
                     to, panel_columns);
  }
  fill_up<parts>(to, panel_columns, range.inner);
}

}  // namespace
}  // namespace heed::kernels
HWY_POP_ATTRIBUTES
