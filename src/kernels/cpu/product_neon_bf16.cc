// Matrix products of operands rounded to bf16, summed in f32, by AArch64's dot products of pairs
// (BFDOT).
#include "kernels/cpu/neon_instructions.h"
#include "kernels/cpu/product_kernels.h"

#if HEED_NEON_EXTENSIONS

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/vector_math-inl.h"

namespace heed::kernels {
namespace {

using namespace HWY_NAMESPACE;

// Panels of both operands consist of pairs along `inner`: (inner/2, rows or columns) words. Those
// of B are also the panels of weights prepared in bf16.
using Words = hn::RebindToUnsigned<Floats>;
using WordVector = hn::Vec<Words>;

constexpr int tile_rows = 6;
constexpr std::int64_t panel_columns = 32;
// Half the columns at once: 24 accumulators, four vectors of B and an element of A are 29 of 32
// registers.
constexpr int vectors = 4;
constexpr std::int64_t lanes = 4;
constexpr std::int64_t half_columns = vectors * lanes;
constexpr std::int64_t line_bytes = 64;  // of a cache

std::int64_t pairs_of(std::int64_t inner) { return (inner + 1) / 2; }

// In the upper halves of words. NaN becomes quiet: what makes it NaN could be in the lower half.
WordVector rounded(Float value) {
  const Words d;
  const WordVector quiet = hn::Or(hn::BitCast(d, value), hn::Set(d, 0x00400000U));
  const Float kept =
      hn::IfThenElse(hn::IsNaN(value), hn::BitCast(Floats(), quiet), RoundedToBf16(value));
  return hn::BitCast(d, kept);
}

WordVector paired(Float even, Float odd) {
  const WordVector high = hn::And(rounded(odd), hn::Set(Words(), 0xFFFF0000U));
  return hn::Or(hn::ShiftRight<16>(rounded(even)), high);
}

Float load(const float* from, std::int64_t count) {
  const Floats d;
  if (count >= lanes) return hn::LoadU(d, from);
  return count <= 0 ? hn::Zero(d) : LoadPartial(d, from, static_cast<std::size_t>(count));
}

// to (pairs, to_stride) from `from` (inner, count).
void pair_rows(const float* from, std::int64_t from_stride, std::int64_t count, std::int64_t inner,
               std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t k = 0; k < inner; k += 2, from += 2 * from_stride, to += to_stride) {
    for (std::int64_t c = 0; c < count; c += lanes) {
      const Float odd =
          k + 1 < inner ? load(from + from_stride + c, count - c) : hn::Zero(Floats());
      std::uint32_t words[lanes];
      hn::StoreU(paired(load(from + c, count - c), odd), Words(), words);
      std::memcpy(to + c, words,
                  sizeof(*to) * static_cast<std::size_t>(std::min(lanes, count - c)));
    }
  }
}

// The same from the transpose, `from` (count, inner).
void pair_columns(const float* from, std::int64_t from_stride, std::int64_t count,
                  std::int64_t inner, std::uint32_t* to, std::int64_t to_stride) {
  const Floats d;
  for (std::int64_t r = 0; r < count; ++r) {
    const float* const row = from + r * from_stride;
    for (std::int64_t k = 0; k < inner; k += 2 * lanes) {
      const Float low = load(row + k, inner - k);
      const Float high = inner - k > lanes ? load(row + k + lanes, inner - k - lanes) : hn::Zero(d);
      std::uint32_t words[lanes];
      hn::StoreU(paired(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)), Words(), words);
      const std::int64_t pairs = std::min(lanes, pairs_of(inner - k));
      for (std::int64_t i = 0; i < pairs; ++i) to[(k / 2 + i) * to_stride + r] = words[i];
    }
  }
}

void pack_a(const ProductOperand& a, const PanelRange& range, void* panels) {
  auto* to = static_cast<std::uint32_t*>(panels);
  for (std::int64_t r = 0; r < range.count; r += tile_rows) {
    const std::int64_t row = range.first + r;
    const std::int64_t rows = std::min<std::int64_t>(tile_rows, range.count - r);
    if (a.transposed) {
      pair_rows(a.data + range.k * a.stride + row, a.stride, rows, range.inner, to, rows);
    } else {
      pair_columns(a.data + row * a.stride + range.k, a.stride, rows, range.inner, to, rows);
    }
    to += pairs_of(range.inner) * rows;
  }
}

void pack_b(const ProductOperand& b, const PanelRange& range, void* panel) {
  auto* const to = static_cast<std::uint32_t*>(panel);
  if (range.count < panel_columns) {
    const std::int64_t words = pairs_of(range.inner) * panel_columns;
    std::memset(to, 0, sizeof(*to) * static_cast<std::size_t>(words));
  }
  if (b.transposed) {
    pair_columns(b.data + range.first * b.stride + range.k, b.stride, range.count, range.inner, to,
                 panel_columns);
  } else {
    pair_rows(b.data + range.k * b.stride + range.first, b.stride, range.count, range.inner, to,
              panel_columns);
  }
}

// C = sums + initial for up to half_columns columns from `column` on.
void store_row(const float* sums, const ProductTile& tile, std::int64_t row, std::int64_t column) {
  float* const c = tile.c + row * tile.c_stride + column;
  const std::int64_t count = std::min(half_columns, tile.columns - column);
  if (tile.initial == nullptr) {
    std::memcpy(c, sums, sizeof(float) * static_cast<std::size_t>(count));
    return;
  }
  const float* const initial = tile.initial + row * tile.initial_stride + column;
  for (std::int64_t i = 0; i < count; ++i) c[i] = sums[i] + initial[i];
}

HWY_PUSH_ATTRIBUTES(HEED_NEON_BF16)

template <int rows>
__attribute__((noinline)) void multiply_half(const ProductTile& tile, std::int64_t column) {
  float32x4_t sum[rows][vectors];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) sum[r][v] = vdupq_n_f32(0);
  }
  const auto* a = static_cast<const std::uint32_t*>(tile.a);
  const auto* b = static_cast<const std::uint32_t*>(tile.b) + column;
  const std::byte* next = tile.next.data();
  const std::byte* const next_end = next + (column == 0 ? tile.next.size() : 0);
  for (std::int64_t pair = pairs_of(tile.inner); pair > 0; --pair) {
    if (next < next_end) {
      __builtin_prefetch(next, 0, 2);
      next += line_bytes;
    }
    bfloat16x8_t b_vector[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      b_vector[v] = vreinterpretq_bf16_u32(vld1q_u32(b + v * lanes));
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const bfloat16x8_t element = vreinterpretq_bf16_u32(vdupq_n_u32(a[r]));
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        sum[r][v] = vbfdotq_f32(sum[r][v], element, b_vector[v]);
      }
    }
    a += rows;
    b += panel_columns;
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    float sums[half_columns];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) vst1q_f32(sums + v * lanes, sum[r][v]);
    store_row(sums, tile, r, column);
  }
}
HWY_POP_ATTRIBUTES

template <std::size_t... index>
constexpr auto half_tiles(std::index_sequence<index...>) {
  return std::array{&multiply_half<static_cast<int>(index) + 1>...};
}

void multiply_tile(const ProductTile& tile) {
  static constexpr auto halves = half_tiles(std::make_index_sequence<tile_rows>{});
  const auto multiply = halves[static_cast<std::size_t>(tile.rows - 1)];
  for (std::int64_t column = 0; column < tile.columns; column += half_columns) {
    multiply(tile, column);
  }
}

}  // namespace

ProductKernels neon_bf16_product_kernels() {
  // A panel of A is 6 KiB, one of B 32 KiB, half of a first-level cache of 64 KiB; a block of B is
  // 256 KiB, and with panels of B in place a block of A 504 KiB.
  return {.rows = tile_rows,
          .columns = panel_columns,
          .row_unit = 1,
          .inner_unit = 2,
          .element = 2,
          .inner_block = 512,
          .row_block = 2016,
          .column_block = 256,
          .row_block_in_place = 504,
          .panel_from_memory = 2.4,  // as measured for AVX-512 BF16
          .bf16_panels = true,
          .pack_a = &pack_a,
          .pack_b = &pack_b,
          .multiply_tile = &multiply_tile};
}

}  // namespace heed::kernels

#else

namespace heed::kernels {
ProductKernels neon_bf16_product_kernels() { return rounded_product_kernels(); }
}  // namespace heed::kernels

#endif
