// Prepared weights in bf16: panels in the layout of the bf16 matrix products and, for one or two
// tokens, vector-matrix products at memory bandwidth.
#include <algorithm>

#include "base/bf16.h"
#include "kernels/cpu/bf16_rows.h"
#include "kernels/cpu/prepared_formats.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/instruction_sets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bf16_format.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/tile_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

constexpr std::int64_t kWidth = PreparedWeight::panel_outputs;
constexpr std::int64_t kStep =
    PreparedWeight::input_unit;  // inputs accumulated before they are added to the sums

// The number of panels read as parallel streams: with vectors of 512 bits two threads then read as
// fast as a plain loop; a single stream reaches 0.8 of that. Vectors of 256 bits take one row
// through the whole width of one panel, every cache line in order.
constexpr bool kWholeWidth = hn::MaxLanes(Floats()) == 8;
constexpr int kStreams = kMaxVectors == 4 ? 4 : (kWholeWidth ? 1 : 2);

// Pairs of inputs of as many outputs as there are lanes, as f32.
struct Pair {
  Float even, odd;
};
HWY_INLINE Pair LoadPair(const std::uint16_t* from) {
  const Floats d;
  const hn::RebindToUnsigned<Floats> du;
  const auto both = hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(from));
  return {hn::BitCast(d, hn::ShiftLeft<16>(both)),
          hn::BitCast(d, hn::And(both, hn::Set(du, 0xFFFF0000)))};
}

// Products of rows of x with several panels.
struct RowsBesidePanels {
  const float* x;  // (rows, inputs)
  std::int64_t inputs;
  const std::uint16_t* panel;  // (panels, inputs / 2, 32, 2)
  float* sums;                 // (rows, 32) of each panel, sums_stride apart
  std::int64_t sums_stride;
  std::int64_t ahead;  // weights, to prefetch of all panels together
};

// sums += x · panelsᵀ of kStep inputs from `first` on. Even and odd inputs are accumulated
// separately from zero and then added to the sums: the order of AMX tiles, so that both give
// bit-identical results.
template <int rows, int panels>
HWY_INLINE void MultiplyStep(const RowsBesidePanels& operands, std::int64_t first) {
  constexpr std::size_t vectors = kWholeWidth && rows == 1 ? 4 : 2;
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < kWidth; column += vectors * lanes) {
    Float even[panels][vectors][rows], odd[panels][vectors][rows];
    const auto for_each_sum = [&](auto body) HEED_INLINE_LAMBDA {
      Unroll<panels>([&](auto p) HEED_INLINE_LAMBDA {
        Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
          Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA { body(p, v, r); });
        });
      });
    };
    for_each_sum([&](auto p, auto v, auto r)
                     HEED_INLINE_LAMBDA { even[p][v][r] = odd[p][v][r] = hn::Zero(d); });
#pragma GCC unroll 2
    for (std::int64_t i = first; i < first + kStep; i += 2) {
      Unroll<panels>([&](auto p) HEED_INLINE_LAMBDA {
        const std::uint16_t* const inputs =
            operands.panel + (static_cast<std::int64_t>(p) * operands.inputs + i) * kWidth;
        Unroll<vectors>([&](auto v) HEED_INLINE_LAMBDA {
          const std::uint16_t* const from =
              inputs + 2 * (column + static_cast<std::int64_t>(v) * lanes);
          // Once per line where vectors have 256 bits; with 128 bits that was slower.
          if (!kWholeWidth || v % 2 == 0) __builtin_prefetch(from + operands.ahead / panels);
          const Pair weights = LoadPair(from);
          Unroll<rows>([&](auto r) HEED_INLINE_LAMBDA {
            const float* const x = operands.x + static_cast<std::int64_t>(r) * operands.inputs + i;
            even[p][v][r] = hn::MulAdd(weights.even, hn::Set(d, x[0]), even[p][v][r]);
            odd[p][v][r] = hn::MulAdd(weights.odd, hn::Set(d, x[1]), odd[p][v][r]);
          });
        });
      });
    }
    for_each_sum([&](auto p, auto v, auto r) HEED_INLINE_LAMBDA {
      float* const to = operands.sums + static_cast<std::int64_t>(p) * operands.sums_stride +
                        static_cast<std::int64_t>(r) * kWidth + column +
                        static_cast<std::int64_t>(v) * lanes;
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Add(even[p][v][r], odd[p][v][r])), d, to);
    });
  }
}

template <int rows, int panels>
HWY_NOINLINE void MultiplyPanels(const RowsBesidePanels& operands) {
  for (std::int64_t i = 0; i < operands.inputs; i += kStep) {
    MultiplyStep<rows, panels>(operands, i);
  }
}

// Panels processed at once for one or two rows, limited by streams or accumulators.
void MultiplyBf16(const float* x, std::int64_t rows, const PanelRun& run, const PanelShape& shape,
                  float* sums) {
  RowsBesidePanels operands{.x = x,
                            .inputs = shape.padded_inputs,
                            .panel = reinterpret_cast<const std::uint16_t*>(run.first),
                            .sums = sums,
                            .sums_stride = rows * kWidth,
                            .ahead = run.ahead / static_cast<std::int64_t>(sizeof(std::uint16_t))};
  for (std::int64_t left = run.count; left > 0;) {
    const std::int64_t panels = left >= kStreams ? kStreams : 1;
    for (std::int64_t row = 0; row < rows;) {
      RowsBesidePanels some = operands;
      some.x += row * operands.inputs;
      some.sums += row * kWidth;
      const bool two = rows - row >= 2;
      row += two ? 2 : 1;
      if (panels == 1) {
        two ? MultiplyPanels<2, 1>(some) : MultiplyPanels<1, 1>(some);
        continue;
      }
      if (!two) {
        MultiplyPanels<1, kStreams>(some);
        continue;
      }
      for (int half = 0; half < 2; ++half) {
        MultiplyPanels<2, kStreams / 2>(some);
        some.panel += kStreams / 2 * some.inputs * kWidth;
        some.sums += kStreams / 2 * some.sums_stride;
      }
    }
    operands.panel += panels * operands.inputs * kWidth;
    operands.sums += panels * operands.sums_stride;
    left -= panels;
  }
}

// Of `count` inputs, from (count / 2, 32, 2).
void ReadBf16(const std::uint16_t* from, std::int64_t count, const RestoredPanel& restored) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < kWidth; column += lanes) {
    float* to = restored.column(column);
    const std::uint16_t* pairs = from + 2 * column;
    for (std::int64_t i = 0; i < count; i += 2, pairs += 2 * kWidth, to += 2 * restored.columns) {
      const Pair weights = LoadPair(pairs);
      hn::StoreU(weights.even, d, to);
      hn::StoreU(weights.odd, d, to + restored.columns);
    }
  }
}

void RoundRows(float* x, std::int64_t count) { RoundToBf16(x, count); }

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(MultiplyBf16);
HWY_EXPORT(ReadBf16);
HWY_EXPORT(RoundRows);

namespace {

constexpr std::int64_t width = PreparedWeight::panel_outputs;

std::int64_t panel_bytes(const PanelShape& shape) {
  return shape.padded_inputs * width * static_cast<std::int64_t>(sizeof(std::uint16_t));
}

std::int64_t scale_bytes(const PanelShape&) { return 0; }

void write_panel(const float* weight, std::int64_t stride, std::int64_t outputs,
                 const PanelShape& shape, const NewPanel& new_panel) {
  auto* const to = reinterpret_cast<std::uint16_t*>(new_panel.panel);
  for (std::int64_t o = 0; o < outputs; ++o) {
    for (std::int64_t i = 0; i < shape.inputs; ++i) {
      to[i / 2 * 2 * width + 2 * o + i % 2] = f32_to_bf16(weight[o * stride + i]);
    }
  }
}

void read_panel(const PanelRun& run, const PanelShape&, std::int64_t first, std::int64_t count,
                const RestoredPanel& restored) {
  HWY_DYNAMIC_DISPATCH(ReadBf16)
  (reinterpret_cast<const std::uint16_t*>(run.first) + first * width, count, restored);
}

std::int64_t prepared_rows_size(std::int64_t rows, const PanelShape& shape) {
  return rows * shape.padded_inputs;
}

// Rounded where products of many rows round them too.
void prepare_rows(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const to = prepared + row * shape.padded_inputs;
    std::copy_n(x + row * shape.inputs, shape.inputs, to);
    std::fill(to + shape.inputs, to + shape.padded_inputs, 0.0F);
  }
  if (has_bf16_products()) {
    HWY_DYNAMIC_DISPATCH(RoundRows)(prepared, rows * shape.padded_inputs);
  }
}

void multiply_panels(const float* prepared, std::int64_t rows, const PanelRun& run,
                     const PanelShape& shape, float* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyBf16)(prepared, rows, run, shape, sums);
}

// From three rows on AMX tiles are used, with the same results. BFDOT sums in another order, and is
// used for any number of rows.
std::int64_t few_rows() {
  if (has_tile_products()) return 2;
  return has_bf16_products() ? 0 : 64;
}

}  // namespace

PreparedFormat bf16_format() {
#if HWY_ARCH_X86_64
  if (has_bf16_products() && !has_tile_products()) {
    return {.panel_bytes = &panel_bytes,
            .scale_bytes = &scale_bytes,
            .write_panel = &write_panel,
            .read_panel = &read_panel,
            .few_rows = few_rows_of_pairs,
            .counts_rows = true,
            .prepared_rows_size = &paired_rows_size,
            .prepare_rows = &pair_rows_of_x,
            .multiply_panels = &multiply_paired_rows};
  }
#endif
  return {.panel_bytes = &panel_bytes,
          .scale_bytes = &scale_bytes,
          .write_panel = &write_panel,
          .read_panel = &read_panel,
          .few_rows = few_rows(),
          .prepared_rows_size = &prepared_rows_size,
          .prepare_rows = &prepare_rows,
          .multiply_panels = &multiply_panels};
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
