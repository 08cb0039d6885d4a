// Matrix products of operands rounded to bf16, summed in f32, by AVX-512 BF16's dot products of
// pairs.
#include <hwy/highway.h>

#include "kernels/cpu/product_kernels.h"

#if HWY_ARCH_X86_64

#include "kernels/cpu/bf16_panels-inl.h"

#include <array>
#include <utility>

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
namespace {

// C = sums + initial, one row of up to 32 columns.
HEED_INLINE void finish_row(const ProductTile& tile, std::int64_t row, __m512 left, __m512 right) {
  const __mmask16 left_mask = first_lanes(tile.columns),
                  right_mask = first_lanes(tile.columns - lanes);
  if (tile.initial != nullptr) {
    const float* initial = tile.initial + row * tile.initial_stride;
    left = _mm512_add_ps(left, _mm512_maskz_loadu_ps(left_mask, initial));
    right = _mm512_add_ps(right, _mm512_maskz_loadu_ps(right_mask, initial + lanes));
  }
  float* c = tile.c + row * tile.c_stride;
  _mm512_mask_storeu_ps(c, left_mask, left);
  _mm512_mask_storeu_ps(c + lanes, right_mask, right);
}

// Panels of A are (inner/2, rows, 2), and a pair of them is broadcast.

constexpr int vector_rows = 14;

void pack_vector_a(const ProductOperand& a, const PanelRange& range, void* panels) {
  const std::int64_t depth = (range.inner + step_inner - 1) / step_inner * step_inner;
  for (std::int64_t r = 0; r < range.count; r += vector_rows) {
    auto* const to = static_cast<std::uint32_t*>(panels) + r * depth / 2;
    const std::int64_t row = range.first + r,
                       rows = std::min<std::int64_t>(vector_rows, range.count - r);
    if (a.transposed) {
      pair_rows(a.data + range.k * a.stride + row, a.stride, rows, range.inner, to, rows);
    } else {
      pair_columns(a.data + row * a.stride + range.k, a.stride, rows, range.inner, to, rows);
    }
    fill_up(to, rows, range.inner);
  }
}

template <int rows>
__attribute__((noinline)) void vector_tile(const ProductTile& tile) {
  __m512 left[rows], right[rows];
  for (int r = 0; r < rows; ++r) left[r] = right[r] = _mm512_setzero_ps();
  const auto* a = static_cast<const std::uint32_t*>(tile.a);
  const auto* b = static_cast<const std::uint32_t*>(tile.b);
  const float* c = tile.c;  // prefetched row by row during the products
  const std::byte* next = tile.next.data();
  const std::byte* const next_end = next + tile.next.size();
  for (std::int64_t pair = 0; pair < pairs_of(tile.inner); ++pair) {
    if (pair < rows) {
      __builtin_prefetch(c, 1);
      __builtin_prefetch(c + panel_columns - 1, 1);
      c += tile.c_stride;
    }
    if (next < next_end) {
      __builtin_prefetch(next, 0, 2);
      next += line_bytes;
    }
    const auto b_left = (__m512bh)_mm512_loadu_si512(b);
    const auto b_right = (__m512bh)_mm512_loadu_si512(b + lanes);
#pragma GCC unroll 14
    for (int r = 0; r < rows; ++r) {
      const auto element = (__m512bh)_mm512_set1_epi32(static_cast<int>(a[r]));
      left[r] = _mm512_dpbf16_ps(left[r], element, b_left);
      right[r] = _mm512_dpbf16_ps(right[r], element, b_right);
    }
    a += rows;
    b += panel_columns;
  }
#pragma GCC unroll 14
  for (int r = 0; r < rows; ++r) finish_row(tile, r, left[r], right[r]);
}

template <std::size_t... index>
constexpr auto vector_tiles(std::index_sequence<index...>) {
  return std::array{&vector_tile<static_cast<int>(index) + 1>...};
}

void multiply_vector_tile(const ProductTile& tile) {
  static constexpr auto tiles = vector_tiles(std::make_index_sequence<vector_rows>{});
  tiles[static_cast<std::size_t>(tile.rows - 1)](tile);
}

}  // namespace

ProductKernels avx512_bf16_product_kernels() {
  return {.rows = vector_rows,
          .columns = panel_columns,
          .row_unit = 1,
          .inner_unit = step_inner,
          .element = 2,
          .inner_block = 1024,
          .row_block = 2016,
          .column_block = 256,
          .row_block_in_place = 504,
          .panel_from_memory = 2.4,
          .bf16_panels = true,
          .pack_a = &pack_vector_a,
          .pack_b = &pack_b,
          .multiply_tile = &multiply_vector_tile};
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#else

namespace heed::kernels {
ProductKernels avx512_bf16_product_kernels() { return rounded_product_kernels(); }
}  // namespace heed::kernels

#endif
