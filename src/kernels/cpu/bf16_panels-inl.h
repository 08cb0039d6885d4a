// Panels of bf16 for the two instruction sets that multiply it: elements in pairs along `inner`, as
// both want them, rounded while they are copied. For code between
// HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS) and HWY_POP_ATTRIBUTES.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/bf16_vectors.h"
#include "kernels/cpu/product_kernels.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)
namespace heed::kernels {
namespace {

constexpr std::int64_t panel_columns = 32;  // of B; 32 pairs are two cache lines
constexpr std::int64_t lanes = 16;          // f32 of a vector
constexpr std::int64_t step_inner = 32;     // bf16 along a row of an AMX tile
constexpr std::int64_t step_pairs = step_inner / 2;
constexpr std::int64_t line_bytes = 64;  // of a cache

// Software prefetch distances: operands lie in short runs, which the hardware prefetcher misses.
constexpr std::int64_t rows_ahead = 24;
constexpr std::int64_t steps_ahead = 4;

std::int64_t pairs_of(std::int64_t inner) { return (inner + 1) / 2; }

// The first `count` of 32 numbers.
struct TwoVectors {
  __m512 low;
  __m512 high;
};
HEED_INLINE TwoVectors load_two(const float* from, std::int64_t count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count), from),
          _mm512_maskz_loadu_ps(first_lanes(count - lanes), from + lanes)};
}

// Packs rows k and k + 1 as pairs: (pairs, to_stride) words from `from` (inner, count), padded with
// zeros if inner is odd.
void pair_rows(const float* from, std::int64_t from_stride, std::int64_t count, std::int64_t inner,
               std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < inner; k += 2) {
    const float* even = from + k * from_stride;
    const float* odd = even + from_stride;
    for (std::int64_t c = 0; c < count; c += lanes) {
      const __mmask16 mask = first_lanes(count - c);
      __builtin_prefetch(even + c + rows_ahead * from_stride, 0, 2);
      __builtin_prefetch(odd + c + rows_ahead * from_stride, 0, 2);
      const __m512 low = _mm512_maskz_loadu_ps(mask, even + c);
      const __m512 high =
          k + 1 < inner ? _mm512_maskz_loadu_ps(mask, odd + c) : _mm512_setzero_ps();
      _mm512_mask_storeu_epi32(to + k / 2 * to_stride + c, mask, paired_words(low, high));
    }
  }
}

// The same from the transpose: (pairs, to_stride) words from `from` (count, inner).
void pair_columns(const float* from, std::int64_t from_stride, std::int64_t count,
                  std::int64_t inner, std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < count; r += lanes) {
    const std::int64_t rows = std::min(lanes, count - r);
    for (std::int64_t k = 0; k < inner; k += step_inner) {
      __m512i block[16];
      for (int i = 0; i < lanes; ++i) {
        const float* row = from + (r + i) * from_stride + k;
        __builtin_prefetch(row + steps_ahead * step_inner);
        __builtin_prefetch(row + steps_ahead * step_inner + lanes);
        const TwoVectors two = i < rows ? load_two(row, inner - k)
                                        : TwoVectors{_mm512_setzero_ps(), _mm512_setzero_ps()};
        block[i] = neighbour_words(two.low, two.high);
      }
      const std::int64_t depth = std::min(step_pairs, pairs_of(inner - k));
      transpose_words(block);
      for (int i = 0; i < lanes && i < depth; ++i) {
        _mm512_mask_storeu_epi32(to + (k / 2 + i) * to_stride + r, first_lanes(rows), block[i]);
      }
    }
  }
}

// Pads with zero pairs after `inner`, up to a whole step.
void fill_up(std::uint32_t* panel, std::int64_t stride, std::int64_t inner) {
  const std::int64_t filled = pairs_of(inner), missing = -filled & (step_pairs - 1);
  std::memset(panel + filled * stride, 0,
              sizeof(*panel) * static_cast<std::size_t>(missing * stride));
}

// Packs columns of B as (inner/32, 16, 32, 2), padded with zeros after count and inner. Not all
// that include this multiply.
[[maybe_unused]] void pack_b(const ProductOperand& b, const PanelRange& range, void* panel) {
  auto* const to = static_cast<std::uint32_t*>(panel);
  if (range.count < panel_columns) {
    const std::int64_t steps = (range.inner + step_inner - 1) / step_inner;
    std::memset(to, 0, sizeof(*to) * static_cast<std::size_t>(steps * step_pairs * panel_columns));
  }
  if (b.transposed) {
    pair_columns(b.data + range.first * b.stride + range.k, b.stride, range.count, range.inner, to,
                 panel_columns);
  } else {
    pair_rows(b.data + range.k * b.stride + range.first, b.stride, range.count, range.inner, to,
              panel_columns);
  }
  fill_up(to, panel_columns, range.inner);
}

}  // namespace
}  // namespace heed::kernels
HWY_POP_ATTRIBUTES
