// Matrix products by AMX, whose tiles multiply bf16 (16 x 32 by 32 x 16) and sum in f32: of
// operands rounded to bf16.
#include <hwy/highway.h>

#include "kernels/cpu/product_kernels.h"

#if HWY_ARCH_X86_64

#include "kernels/cpu/bf16_panels-inl.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
namespace {

constexpr std::int64_t tile_rows = 16;
constexpr std::int64_t tile_words = tile_rows * step_pairs;  // 1 KiB
constexpr std::int64_t side = 2 * tile_rows;                 // of the four tiles of C
constexpr std::int64_t step_of_b = 2 * tile_words;           // of a panel, for 32 of `inner`

// Panels of A are blocks of 16 rows, each (inner/32, 16, 32).
void pack_rows_of_a(const ProductOperand& a, const PanelRange& range, std::uint32_t* to) {
  // Prefetches the same rows further on, or the start of the rows below.
  constexpr std::int64_t ahead = steps_ahead * step_inner;
  const std::int64_t to_rows_below = tile_rows * a.stride + ahead - range.inner;
  for (std::int64_t r = 0; r < range.count; r += tile_rows) {
    const std::int64_t rows = std::min(tile_rows, range.count - r);
    for (std::int64_t k = 0; k < range.inner; k += step_inner, to += tile_words) {
      const std::int64_t depth = std::min(step_inner, range.inner - k);
      const float* from = a.data + (range.first + r) * a.stride + range.k + k;
      const std::int64_t to_ahead = k + ahead < range.inner ? ahead : to_rows_below;
      for (std::int64_t i = 0; i < tile_rows; ++i) {
        const float* const soon = from + i * a.stride + to_ahead;
        __builtin_prefetch(soon);
        __builtin_prefetch(soon + lanes);
        const TwoVectors two = i < rows ? load_two(from + i * a.stride, depth)
                                        : TwoVectors{_mm512_setzero_ps(), _mm512_setzero_ps()};
        _mm512_store_si512(to + i * lanes, neighbour_words(two.low, two.high));
      }
    }
  }
}

// From the transpose: 32 of its rows at a time, sequentially. Rows are prefetched a few lines
// ahead, into the second-level cache: they are often a multiple of 4 KiB apart, and the first level
// holds no more than twelve such lines.
void pack_columns_of_a(const ProductOperand& a, const PanelRange& range, std::uint32_t* panels) {
  constexpr std::int64_t ahead = 8 * lanes;
  const std::int64_t panel = divide_up(range.inner, step_inner) * tile_words;
  for (std::int64_t k = 0; k < range.inner; k += step_inner) {
    const std::int64_t depth = std::min(step_inner, range.inner - k);
    std::uint32_t* to = panels + k / step_inner * tile_words;
    for (std::int64_t r = 0; r < range.count; r += tile_rows, to += panel) {
      const std::int64_t rows = std::min(tile_rows, range.count - r);
      const float* from = a.data + (range.k + k) * a.stride + range.first + r;
      const auto row = [&](std::int64_t index) __attribute__((always_inline)) {
        __builtin_prefetch(from + index * a.stride + ahead, 0, 2);
        return index < depth ? _mm512_maskz_loadu_ps(first_lanes(rows), from + index * a.stride)
                             : _mm512_setzero_ps();
      };
      __m512i block[16];
      for (int i = 0; i < lanes; ++i) block[i] = paired_words(row(2 * i), row(2 * i + 1));
      transpose_words(block);
      for (int i = 0; i < lanes; ++i) _mm512_store_si512(to + i * lanes, block[i]);
    }
  }
}

void pack_tile_a(const ProductOperand& a, const PanelRange& range, void* panels) {
  (a.transposed ? pack_columns_of_a : pack_rows_of_a)(a, range,
                                                      static_cast<std::uint32_t*>(panels));
}

void begin_tiles() {
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
}

void end_tiles() { _tile_release(); }

// Tiles 0 to 3 hold a square of C, two by two; 4 and 5 its rows of A; 6 and 7 its columns of B.
// A product smaller than a square does not use tiles 2, 3 and 5. Each operand is loaded as soon as
// the last product that reads its tile has been issued, two products ahead of its use.
template <bool lower>
struct Square {
  std::int64_t to_lower;  // words from a row of A's tiles to the one below

  HEED_INLINE void load_upper_a(const std::uint32_t* a) const { _tile_loadd(4, a, 64); }
  HEED_INLINE void load_lower_a(const std::uint32_t* a) const {
    if constexpr (lower) _tile_loadd(5, a + to_lower, 64);
  }
  HEED_INLINE void load_left_b(const std::uint32_t* b) const {
    _tile_loadd(6, b, panel_columns * 4);
  }
  HEED_INLINE void load_right_b(const std::uint32_t* b) const {
    _tile_loadd(7, b + lanes, panel_columns * 4);
  }

  HEED_INLINE void load(const std::uint32_t* a, const std::uint32_t* b) const {
    load_upper_a(a);
    load_left_b(b);
    load_right_b(b);
    load_lower_a(a);
  }

  // C += A·B, then loads the next A and B.
  HEED_INLINE void multiply_and_load(const std::uint32_t* a, const std::uint32_t* b) const {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    load_upper_a(a);
    if constexpr (lower) _tile_dpbf16ps(2, 5, 6);
    load_left_b(b);
    if constexpr (lower) _tile_dpbf16ps(3, 5, 7);
    load_right_b(b);
    load_lower_a(a);
  }
};

// C (rows, 32) from sums that begin with `initial`.
template <bool lower>
HEED_INLINE void multiply_square(const ProductTile& tile, const float* initial,
                                 std::int64_t initial_stride, float* c, std::int64_t c_stride) {
  if (initial == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    const std::int64_t bytes = initial_stride * 4;
    finish_stores();
    _tile_loadd(0, initial, bytes);
    _tile_loadd(1, initial + lanes, bytes);
    if constexpr (lower) {
      _tile_loadd(2, initial + tile_rows * initial_stride, bytes);
      _tile_loadd(3, initial + tile_rows * initial_stride + lanes, bytes);
    }
  }
  const std::int64_t steps = divide_up(tile.inner, step_inner);
  const std::int64_t lines_a_step =
      steps > 0 ? divide_up(static_cast<std::int64_t>(tile.next.size()), steps * line_bytes) : 0;
  const std::byte* next = tile.next.data();
  const auto* a = static_cast<const std::uint32_t*>(tile.a);
  const auto* b = static_cast<const std::uint32_t*>(tile.b);
  const Square<lower> square{.to_lower = steps * tile_words};
  if (steps > 0) square.load(a, b);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t line = 0; line < lines_a_step; ++line, next += line_bytes) {
      __builtin_prefetch(next, 0, 2);
    }
    const bool last = step + 1 == steps;  // loads the same operands again, unused
    const std::uint32_t* const next_a = last ? a : a + tile_words;
    const std::uint32_t* const next_b = last ? b : b + step_of_b;
    square.multiply_and_load(next_a, next_b);
    a = next_a;
    b = next_b;
  }
  const std::int64_t bytes = c_stride * 4;
  _tile_stored(0, c, bytes);
  _tile_stored(1, c + lanes, bytes);
  if constexpr (lower) {
    _tile_stored(2, c + tile_rows * c_stride, bytes);
    _tile_stored(3, c + tile_rows * c_stride + lanes, bytes);
  }
}

// Up to 32 columns of a row, from or to a row of 32.
HEED_INLINE void copy_row(const float* from, std::int64_t columns, float* to) {
  const __mmask16 left = first_lanes(columns), right = first_lanes(columns - lanes);
  _mm512_mask_storeu_ps(to, left, _mm512_maskz_loadu_ps(left, from));
  _mm512_mask_storeu_ps(to + lanes, right, _mm512_maskz_loadu_ps(right, from + lanes));
}

template <bool lower>
void multiply_rows(const ProductTile& tile) {
  if (tile.columns == side && tile.rows == (lower ? side : tile_rows)) {
    return multiply_square<lower>(tile, tile.initial, tile.initial_stride, tile.c, tile.c_stride);
  }
  alignas(64) float square[side * side] = {};
  for (std::int64_t r = 0; r < tile.rows && tile.initial != nullptr; ++r) {
    copy_row(tile.initial + r * tile.initial_stride, tile.columns, square + r * side);
  }
  multiply_square<lower>(tile, tile.initial == nullptr ? nullptr : square, side, square, side);
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    copy_row(square + r * side, tile.columns, tile.c + r * tile.c_stride);
  }
}

void multiply_amx_tile(const ProductTile& tile) {
  tile.rows > tile_rows ? multiply_rows<true>(tile) : multiply_rows<false>(tile);
}

// Prefetches the two tiles of B used some steps later. Panels are consecutive.
HEED_INLINE void fetch_ahead(const std::uint32_t* b) {
  constexpr std::int64_t ahead = 4 * 2 * tile_words;
#pragma GCC unroll 32
  for (std::int64_t line = 0; line < 2 * tile_words; line += lanes) {
    __builtin_prefetch(b + ahead + line, 0, 3);
  }
}

// Up to 16 rows by 64 columns, from two panels of B read in parallel: two streams per thread are
// faster than one.
void multiply_beside(const ProductTile& tile, const void* right_b) {
  const std::int64_t steps = (tile.inner + step_inner - 1) / step_inner;
  const auto* a = static_cast<const std::uint32_t*>(tile.a);
  const auto* left = static_cast<const std::uint32_t*>(tile.b);
  const auto* right = static_cast<const std::uint32_t*>(right_b);
  alignas(64) float sums[tile_rows][2 * side];
  if (tile.initial == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const float* initial = tile.initial + r * tile.initial_stride;
      copy_row(initial, tile.columns, sums[r]);
      copy_row(initial + side, tile.columns - side, sums[r] + side);
    }
    finish_stores();
    _tile_loadd(0, sums[0], sizeof(sums[0]));
    _tile_loadd(1, sums[0] + lanes, sizeof(sums[0]));
    _tile_loadd(2, sums[0] + side, sizeof(sums[0]));
    _tile_loadd(3, sums[0] + side + lanes, sizeof(sums[0]));
  }
  for (std::int64_t step = 0; step < steps; ++step) {
    fetch_ahead(left);
    fetch_ahead(right);
    _tile_loadd(4, a, 64);
    _tile_loadd(6, left, panel_columns * 4);
    _tile_loadd(7, left + lanes, panel_columns * 4);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(6, right, panel_columns * 4);
    _tile_loadd(7, right + lanes, panel_columns * 4);
    _tile_dpbf16ps(2, 4, 6);
    _tile_dpbf16ps(3, 4, 7);
    a += tile_words;
    left += 2 * tile_words;
    right += 2 * tile_words;
  }
  _tile_stored(0, sums[0], sizeof(sums[0]));
  _tile_stored(1, sums[0] + lanes, sizeof(sums[0]));
  _tile_stored(2, sums[0] + side, sizeof(sums[0]));
  _tile_stored(3, sums[0] + side + lanes, sizeof(sums[0]));
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    float* const c = tile.c + r * tile.c_stride;
    copy_row(sums[r], tile.columns, c);
    copy_row(sums[r] + side, tile.columns - side, c + side);
  }
}

}  // namespace

ProductKernels amx_bf16_product_kernels() {
  return {.rows = side,
          .columns = panel_columns,
          .row_unit = tile_rows,
          .inner_unit = step_inner,
          .element = 2,
          .inner_block = 1024,
          .row_block = 2048,
          .column_block = 256,
          .row_block_in_place = 512,
          .panel_from_memory = 5,
          .tiles_of_part = 12,
          .bf16_panels = true,
          .pack_a = &pack_tile_a,
          .pack_b = &pack_b,
          .multiply_tile = &multiply_amx_tile,
          .few_rows = tile_rows,
          .multiply_beside = &multiply_beside,
          .begin = &begin_tiles,
          .end = &end_tiles};
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#else

namespace heed::kernels {
ProductKernels amx_bf16_product_kernels() { return rounded_product_kernels(); }
}  // namespace heed::kernels

#endif
