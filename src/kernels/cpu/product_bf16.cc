// Matrix products of operands rounded to bf16, summed in f32, by the two instruction sets that have
// them: AVX-512 BF16 (dot products of pairs) and AMX (products of 16 x 32 by 32 x 16 tiles). Panels
// hold elements in pairs along `inner`, as both sets want them.
#include <hwy/highway.h>

#include "base/error.h"
#include "kernels/cpu/product_kernels.h"

#if HWY_ARCH_X86_64

#include "kernels/cpu/bf16_instructions.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
namespace {

#define HEED_INLINE __attribute__((always_inline)) inline

constexpr std::int64_t panel_columns = 32;  // of B; 32 pairs are two cache lines
constexpr std::int64_t lanes = 16;          // f32 of a vector
constexpr std::int64_t tile_inner = 32;     // bf16 along a row of an AMX tile

std::int64_t pairs_of(std::int64_t inner) { return (inner + 1) / 2; }

// The first `count` of 16 numbers, the rest zero.
HEED_INLINE __mmask16 first(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, lanes)) - 1);
}

// 16 pairs (low, high) of bf16 from two vectors of f32.
HEED_INLINE __m512i pairs(__m512 low, __m512 high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, low));
}

// 16 neighbouring pairs, 32 numbers, as they lie.
HEED_INLINE __m512i neighbours(const float* from, std::int64_t count) {
  const __m512 low = _mm512_maskz_loadu_ps(first(count), from);
  const __m512 high = _mm512_maskz_loadu_ps(first(count - lanes), from + lanes);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

// Rows k and k + 1 of a matrix whose columns are wanted as pairs: (pairs, to_stride) words from
// `from` (inner, count), zeros where inner is odd.
void pair_rows(const float* from, std::int64_t from_stride, std::int64_t count, std::int64_t inner,
               std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < inner; k += 2) {
    const float* even = from + k * from_stride;
    const float* odd = even + from_stride;
    for (std::int64_t c = 0; c < count; c += lanes) {
      const __mmask16 mask = first(count - c);
      const __m512 low = _mm512_maskz_loadu_ps(mask, even + c);
      const __m512 high =
          k + 1 < inner ? _mm512_maskz_loadu_ps(mask, odd + c) : _mm512_setzero_ps();
      _mm512_mask_storeu_epi32(to + c, mask, pairs(low, high));
    }
    to += to_stride;
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
void pair_columns(const float* from, std::int64_t from_stride, std::int64_t count,
                  std::int64_t inner, std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < count; r += lanes) {
    const std::int64_t rows = std::min(lanes, count - r);
    for (std::int64_t k = 0; k < inner; k += 2 * lanes) {
      __m512i block[16];
      for (int i = 0; i < lanes; ++i) {
        block[i] = i < rows ? neighbours(from + (r + i) * from_stride + k, inner - k)
                            : _mm512_setzero_si512();
      }
      transpose16(block);
      const std::int64_t depth = std::min(lanes, pairs_of(inner - k));
      for (int i = 0; i < lanes && i < depth; ++i) {
        _mm512_mask_storeu_epi32(to + (k / 2 + i) * to_stride + r, first(rows), block[i]);
      }
    }
  }
}

// Zero pairs behind `inner`, up to a whole number of `unit`.
void fill_up(std::uint32_t* panel, std::int64_t stride, std::int64_t inner, std::int64_t unit) {
  const std::int64_t begin = pairs_of(inner), end = (inner + unit - 1) / unit * unit / 2;
  std::memset(panel + begin * stride, 0,
              sizeof(*panel) * static_cast<std::size_t>((end - begin) * stride));
}

// Columns of B as (inner/2, 32, 2), zero behind count and inner.
void pack_b(const ProductOperand& b, const PanelRange& range, void* panel) {
  auto* const to = static_cast<std::uint32_t*>(panel);
  if (range.count < panel_columns) {
    std::memset(to, 0,
                sizeof(*to) * static_cast<std::size_t>(pairs_of(range.inner) * panel_columns));
  }
  if (b.transposed) {
    pair_columns(b.data + range.first * b.stride + range.k, b.stride, range.count, range.inner, to,
                 panel_columns);
  } else {
    pair_rows(b.data + range.k * b.stride + range.first, b.stride, range.count, range.inner, to,
              panel_columns);
  }
  fill_up(to, panel_columns, range.inner, tile_inner);
}

// C = sums + initial, one row of up to 32 columns.
HEED_INLINE void finish_row(const ProductTile& tile, std::int64_t row, __m512 left, __m512 right) {
  const __mmask16 left_mask = first(tile.columns), right_mask = first(tile.columns - lanes);
  if (tile.initial != nullptr) {
    const float* initial = tile.initial + row * tile.initial_stride;
    left = _mm512_add_ps(left, _mm512_maskz_loadu_ps(left_mask, initial));
    right = _mm512_add_ps(right, _mm512_maskz_loadu_ps(right_mask, initial + lanes));
  }
  float* c = tile.c + row * tile.c_stride;
  _mm512_mask_storeu_ps(c, left_mask, left);
  _mm512_mask_storeu_ps(c + lanes, right_mask, right);
}

// --- AVX-512 BF16: panels of A are (inner/2, rows, 2), and a pair of them is broadcast.

constexpr int vector_rows = 14;

void pack_vector_a(const ProductOperand& a, const PanelRange& range, void* panels) {
  const std::int64_t depth = (range.inner + tile_inner - 1) / tile_inner * tile_inner;
  for (std::int64_t r = 0; r < range.count; r += vector_rows) {
    auto* const to = static_cast<std::uint32_t*>(panels) + r * depth / 2;
    const std::int64_t row = range.first + r,
                       rows = std::min<std::int64_t>(vector_rows, range.count - r);
    if (a.transposed) {
      pair_rows(a.data + range.k * a.stride + row, a.stride, rows, range.inner, to, rows);
    } else {
      pair_columns(a.data + row * a.stride + range.k, a.stride, rows, range.inner, to, rows);
    }
    fill_up(to, rows, range.inner, tile_inner);
  }
}

template <int rows>
__attribute__((noinline)) void vector_tile(const ProductTile& tile) {
  __m512 left[rows], right[rows];
  for (int r = 0; r < rows; ++r) left[r] = right[r] = _mm512_setzero_ps();
  const auto* a = static_cast<const std::uint32_t*>(tile.a);
  const auto* b = static_cast<const std::uint32_t*>(tile.b);
  const float* c = tile.c;  // fetched, row by row, while the products are summed
  for (std::int64_t pair = 0; pair < pairs_of(tile.inner); ++pair) {
    if (pair < rows) {
      __builtin_prefetch(c, 1);
      __builtin_prefetch(c + panel_columns - 1, 1);
      c += tile.c_stride;
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

// --- AMX: panels of A are blocks of 16 rows, each (inner/32, 16, 32), so that a tile is 1 KiB.

constexpr std::int64_t tile_rows = 16;
constexpr std::int64_t tile_words = tile_rows * tile_inner / 2;

void pack_tile_a(const ProductOperand& a, const PanelRange& range, void* panel) {
  auto* to = static_cast<std::uint32_t*>(panel);
  for (std::int64_t r = 0; r < range.count; r += tile_rows) {
    const std::int64_t rows = std::min(tile_rows, range.count - r);
    for (std::int64_t k = 0; k < range.inner; k += tile_inner, to += tile_words) {
      const std::int64_t depth = std::min(tile_inner, range.inner - k);
      if (!a.transposed) {
        const float* from = a.data + (range.first + r) * a.stride + range.k + k;
        for (std::int64_t i = 0; i < tile_rows; ++i) {
          _mm512_store_si512(to + i * lanes, i < rows ? neighbours(from + i * a.stride, depth)
                                                      : _mm512_setzero_si512());
        }
        continue;
      }
      const float* from = a.data + (range.k + k) * a.stride + range.first + r;
      __m512i block[16];
      for (int i = 0; i < lanes; ++i) {
        const __m512 zero = _mm512_setzero_ps();
        const std::int64_t even = 2 * i, odd = even + 1;
        const __mmask16 mask = first(rows);
        block[i] = pairs(even < depth ? _mm512_maskz_loadu_ps(mask, from + even * a.stride) : zero,
                         odd < depth ? _mm512_maskz_loadu_ps(mask, from + odd * a.stride) : zero);
      }
      transpose16(block);
      for (int i = 0; i < lanes; ++i) _mm512_store_si512(to + i * lanes, block[i]);
    }
  }
}

void begin_tiles() {
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

void end_tiles() { _tile_release(); }

// The two tiles of B that are read `ahead` bytes later. Behind a panel lies the next one.
HEED_INLINE void fetch_ahead(const std::uint32_t* b) {
  constexpr std::int64_t ahead = 8192, bytes = 2 * tile_words * 4;
  const char* const from = reinterpret_cast<const char*>(b) + ahead;
#pragma GCC unroll 32
  for (std::int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 0, 2);
}

// 32 x 32 of C in four tiles, from two of A and two of B.
void multiply_amx_tile(const ProductTile& tile) {
  const std::int64_t steps = (tile.inner + tile_inner - 1) / tile_inner;
  const auto* a = static_cast<const std::uint32_t*>(tile.a);
  const auto* b = static_cast<const std::uint32_t*>(tile.b);
  const bool lower = tile.rows > tile_rows;
  constexpr std::int64_t b_bytes = panel_columns * 4;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const float* c = tile.c;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t r = 2 * step; r < 2 * step + 2 && r < tile.rows; ++r) {
      __builtin_prefetch(c, 1);
      __builtin_prefetch(c + panel_columns - 1, 1);
      c += tile.c_stride;
    }
    if (tile.streams_b) fetch_ahead(b);
    _tile_loadd(4, a + step * tile_words, 64);
    _tile_loadd(6, b, b_bytes);
    _tile_loadd(7, b + lanes, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (lower) {
      _tile_loadd(5, a + (steps + step) * tile_words, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    b += tile_inner / 2 * panel_columns;
  }
  alignas(64) float sums[4][tile_rows * lanes];
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  if (lower) {
    _tile_stored(2, sums[2], 64);
    _tile_stored(3, sums[3], 64);
  }
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const std::int64_t half = r / tile_rows * 2, row = r % tile_rows * lanes;
    finish_row(tile, r, _mm512_load_ps(sums[half] + row), _mm512_load_ps(sums[half + 1] + row));
  }
}

}  // namespace

ProductKernels avx512_bf16_product_kernels() {
  return {.rows = vector_rows,
          .columns = panel_columns,
          .row_unit = 1,
          .inner_unit = tile_inner,
          .element = 2,
          .inner_block = 1024,
          .row_block = 2016,
          .column_block = 256,
          .bf16_panels = true,
          .pack_a = &pack_vector_a,
          .pack_b = &pack_b,
          .multiply_tile = &multiply_vector_tile};
}

ProductKernels amx_bf16_product_kernels() {
  return {.rows = 2 * tile_rows,
          .columns = panel_columns,
          .row_unit = tile_rows,
          .inner_unit = tile_inner,
          .element = 2,
          .inner_block = 768,
          .row_block = 2048,
          .column_block = 256,
          .bf16_panels = true,
          .pack_a = &pack_tile_a,
          .pack_b = &pack_b,
          .multiply_tile = &multiply_amx_tile,
          .begin = &begin_tiles,
          .end = &end_tiles};
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#else

namespace heed::kernels {
ProductKernels avx512_bf16_product_kernels() { return rounded_product_kernels(); }
ProductKernels amx_bf16_product_kernels() { return rounded_product_kernels(); }
}  // namespace heed::kernels

#endif
