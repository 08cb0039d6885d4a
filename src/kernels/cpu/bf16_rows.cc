#include "kernels/cpu/bf16_rows.h"

#include <hwy/highway.h>

#if HWY_ARCH_X86_64

#include "kernels/cpu/bf16_panels-inl.h"

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
namespace {

constexpr std::int64_t streams = 4;  // panels that are read in parallel, for up to three rows

// Rows of x and panels beside each other, both `pairs` words long.
struct RowsBesidePanels {
  const std::uint32_t* x;
  const std::uint32_t* panel;  // (panels, pairs, 32)
  std::int64_t pairs;
  float* sums;  // (rows, 32) of each panel, sums_stride apart
  std::int64_t sums_stride;
  std::int64_t ahead;  // words, to prefetch of all panels together
};

// sums += x · panelsᵀ over pairs [first, end), summed from zero in the order of a tile.
template <int rows, int panels>
HEED_INLINE void multiply_block(const RowsBesidePanels& operands, std::int64_t first,
                                std::int64_t end) {
  __m512 left[panels][rows], right[panels][rows];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) left[p][r] = right[p][r] = _mm512_setzero_ps();
  }
  for (std::int64_t pair = first; pair < end; ++pair) {
    // At their ends, panels are followed by the beginnings of those that are read next.
    const std::int64_t rest = (operands.pairs - pair) * panel_columns;
    const std::int64_t own = operands.ahead / panels;
    const std::int64_t ahead =
        own + (rest <= own ? (panels - 1) * operands.pairs * panel_columns : 0);
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p) {
      const std::uint32_t* const from =
          operands.panel + (p * operands.pairs + pair) * panel_columns;
      __builtin_prefetch(from + ahead);
      __builtin_prefetch(from + lanes + ahead);
      const auto b_left = (__m512bh)_mm512_loadu_si512(from);
      const auto b_right = (__m512bh)_mm512_loadu_si512(from + lanes);
#pragma GCC unroll 6
      for (int r = 0; r < rows; ++r) {
        const auto element =
            (__m512bh)_mm512_set1_epi32(static_cast<int>(operands.x[r * operands.pairs + pair]));
        left[p][r] = _mm512_dpbf16_ps(left[p][r], element, b_left);
        right[p][r] = _mm512_dpbf16_ps(right[p][r], element, b_right);
      }
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      float* const to = operands.sums + p * operands.sums_stride + r * panel_columns;
      _mm512_storeu_ps(to, _mm512_add_ps(left[p][r], _mm512_loadu_ps(to)));
      _mm512_storeu_ps(to + lanes, _mm512_add_ps(right[p][r], _mm512_loadu_ps(to + lanes)));
    }
  }
}

// In blocks of `inner` as deep as the matrix product's.
template <int rows, int panels>
__attribute__((noinline)) void multiply_some(const RowsBesidePanels& operands,
                                             std::int64_t block_pairs) {
  for (std::int64_t first = 0; first < operands.pairs; first += block_pairs) {
    multiply_block<rows, panels>(operands, first, std::min(first + block_pairs, operands.pairs));
  }
}

// All panels, as many beside each other as their sums have registers for.
template <int rows>
void multiply_rows(RowsBesidePanels operands, std::int64_t panels, std::int64_t block_pairs) {
  constexpr int beside = rows <= 3 ? streams : 2;
  const auto run = [&]<int some>(std::integral_constant<int, some>) {
    multiply_some<rows, some>(operands, block_pairs);
    operands.panel += some * operands.pairs * panel_columns;
    operands.sums += some * operands.sums_stride;
  };
  for (; panels >= beside; panels -= beside) run(std::integral_constant<int, beside>{});
  for (; panels > 0; --panels) run(std::integral_constant<int, 1>{});
}

}  // namespace

std::int64_t paired_rows_size(std::int64_t rows, const PanelShape& shape) {
  return rows * shape.padded_inputs / 2;
}

void pair_rows_of_x(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared) {
  auto* to = reinterpret_cast<std::uint32_t*>(prepared);
  for (std::int64_t row = 0; row < rows; ++row, x += shape.inputs) {
    for (std::int64_t i = 0; i < shape.inputs; i += step_inner, to += step_pairs) {
      const TwoVectors two = load_two(x + i, shape.inputs - i);
      _mm512_storeu_si512(to, neighbour_words(two.low, two.high));
    }
  }
}

void multiply_paired_rows(const float* prepared, std::int64_t rows, const PanelRun& run,
                          const PanelShape& shape, float* sums) {
  RowsBesidePanels operands{.x = reinterpret_cast<const std::uint32_t*>(prepared),
                            .panel = reinterpret_cast<const std::uint32_t*>(run.first),
                            .pairs = shape.padded_inputs / 2,
                            .sums = sums,
                            .sums_stride = rows * panel_columns,
                            .ahead = run.ahead / static_cast<std::int64_t>(sizeof(std::uint32_t))};
  const std::int64_t block_pairs =
      avx512_bf16_product_kernels().block_depth(shape.inputs, PreparedWeight::input_unit) / 2;
  for (std::int64_t left = rows; left > 0;) {
    const auto run_rows = [&]<int some>(std::integral_constant<int, some>) {
      multiply_rows<some>(operands, run.count, block_pairs);
      operands.x += some * operands.pairs;
      operands.sums += some * panel_columns;
      left -= some;
    };
    if (left >= 6) {
      run_rows(std::integral_constant<int, 6>{});
    } else if (left >= 3) {
      run_rows(std::integral_constant<int, 3>{});
    } else if (left == 2) {
      run_rows(std::integral_constant<int, 2>{});
    } else {
      run_rows(std::integral_constant<int, 1>{});
    }
  }
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#endif
