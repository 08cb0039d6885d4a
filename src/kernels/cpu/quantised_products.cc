// Products of a few rows of x with int8 and int4 panels. x is quantised to int8 as well, so that a
// group of 32 inputs is summed exactly in integers; scales are applied in f32 once per group.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/quantised_products.h"

#define HWY_WANT_AVX3_DL  // a target that Highway excludes by default
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantised_products.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/quantised_panels-inl.h"

// Machines of Highway's target AVX3_DL have dot products of bytes (VNNI), but its older releases do
// not enable them in the compiler.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define HEED_DOT_PRODUCTS_OF_BYTES 1
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
#else
#define HEED_DOT_PRODUCTS_OF_BYTES 0
HWY_BEFORE_NAMESPACE();
#endif
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Four inputs of x against four unsigned weights in every lane.
#if HEED_DOT_PRODUCTS_OF_BYTES
using Weights = Int;
using Inputs = Int;
using Sum = Int;

HWY_INLINE Weights WeightsOf(Int quads) { return quads; }
HWY_INLINE Inputs InputsOf(Int quad) { return quad; }
HWY_INLINE Sum NoSum() { return hn::Zero(Ints()); }
HWY_INLINE void AddDot(Weights weights, Inputs x, Sum& sum) {
  sum = Int{_mm512_dpbusd_epi32(sum.raw, weights.raw, x.raw)};
}
HWY_INLINE Int Total(Sum sum) { return sum; }
#else
// Without such an instruction: products of pairs of 16 bits, of the even and of the odd bytes.
using Pairs = hn::Repartition<std::int16_t, Ints>;
struct Weights {
  hn::Vec<Pairs> even, odd;
};
struct Inputs {
  hn::Vec<Pairs> even, odd;
};
struct Sum {
  Int first, second;
};

HWY_INLINE Weights WeightsOf(Int quads) {
  const hn::RebindToUnsigned<Pairs> du;
  const auto pairs = hn::BitCast(du, quads);
  return {hn::BitCast(Pairs(), hn::And(pairs, hn::Set(du, 0xFF))),
          hn::BitCast(Pairs(), hn::ShiftRight<8>(pairs))};
}
HWY_INLINE Inputs InputsOf(Int quad) {
  const auto pairs = hn::BitCast(Pairs(), quad);
  return {hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), hn::ShiftRight<8>(pairs)};
}
HWY_INLINE Sum NoSum() { return {hn::Zero(Ints()), hn::Zero(Ints())}; }
HWY_INLINE void AddDot(const Weights& weights, const Inputs& x, Sum& sum) {
  const Ints d;
  sum.first = hn::ReorderWidenMulAccumulate(d, weights.even, x.even, sum.first, sum.second);
  sum.first = hn::ReorderWidenMulAccumulate(d, weights.odd, x.odd, sum.first, sum.second);
}
HWY_INLINE Int Total(const Sum& sum) { return hn::RearrangeToOddPlusEven(sum.first, sum.second); }
#endif

// A part of a panel that stays in the first-level cache (32 KiB) for all rows: consecutive groups
// of two vectors of outputs.
constexpr int kVectors = 2;
constexpr std::int64_t kSliceGroups = 16;

// That part of some panels, panel_bytes apart.
struct Slice {
  const std::uint8_t* integers;
  const std::byte* scales;
  std::int64_t groups;
  std::int64_t panel_bytes;
};

// For one row, this many panels are read in parallel, each prefetched this many bytes ahead: two
// threads then read as fast as a plain loop; one panel at a time reaches 0.8 of that.
constexpr int kStreams = hn::MaxLanes(Floats()) == 16 ? 4 : 1;
constexpr std::int64_t kAhead = 1024;

template <int rows>
HWY_INLINE void AddQuads(const Weights (&weights)[kVectors], const RowGroup* x,
                         std::int64_t row_groups, std::int64_t quad, Sum (&sum)[rows][kVectors]) {
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    std::int32_t four;
    std::memcpy(&four, x[r * row_groups].quantised + 4 * quad, sizeof(four));
    const Inputs inputs = InputsOf(hn::Set(Ints(), four));
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) AddDot(weights[v], inputs, sum[r][v]);
  }
}

// sum += a group of rows of x, row_groups apart, · the panelsᵀ, in integers.
template <class Panel, int rows, int panels>
HWY_INLINE void AddGroup(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                         const std::uint8_t* integers, Sum (&sum)[panels][rows][kVectors]) {
  constexpr std::int64_t loads = Panel::group_bytes / kQuadBytes;
  const std::int64_t lanes = IntLanes();
#pragma GCC unroll 8
  for (std::int64_t load = 0; load < loads; ++load) {
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p) {
      Int bytes[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const std::uint8_t* const from =
            integers + p * slice.panel_bytes + load * kQuadBytes + v * 4 * lanes;
        __builtin_prefetch(from + kAhead, 0, 2);
        bytes[v] = LoadQuads(from);
      }
      if constexpr (loads == kQuads) {
        const Weights weights[] = {WeightsOf(bytes[0]), WeightsOf(bytes[1])};
        AddQuads<rows>(weights, x, row_groups, load, sum[p]);
      } else {
        const Weights low[] = {WeightsOf(LowHalves(bytes[0])), WeightsOf(LowHalves(bytes[1]))};
        AddQuads<rows>(low, x, row_groups, 2 * load, sum[p]);
        const Weights high[] = {WeightsOf(HighHalves(bytes[0])), WeightsOf(HighHalves(bytes[1]))};
        AddQuads<rows>(high, x, row_groups, 2 * load + 1, sum[p]);
      }
    }
  }
}

// total += the group's integers, times the scales of the weights and of x.
template <int rows, int panels>
HWY_INLINE void AddScaled(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                          const std::byte* scales, const Sum (&sum)[panels][rows][kVectors],
                          Float (&total)[panels][rows][kVectors]) {
  const Floats d;
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
    const auto* const from = reinterpret_cast<const std::uint16_t*>(scales + p * slice.panel_bytes);
    const Float weight_scales[] = {LoadScales(d, from), LoadScales(d, from + IntLanes())};
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const RowGroup& x_group = x[r * row_groups];
      const Int correction = hn::Set(Ints(), x_group.correction);
      const Float x_scale = hn::Set(d, x_group.scale);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Float dot = hn::ConvertTo(d, hn::Add(Total(sum[p][r][v]), correction));
        total[p][r][v] = hn::MulAdd(dot, hn::Mul(weight_scales[v], x_scale), total[p][r][v]);
      }
    }
  }
}

// sums (rows, 32) of each panel, sums_stride apart, += rows of x, row_groups apart, · sliceᵀ. Each
// row adds in the same order however many there are.
template <class Panel, int rows, int panels>
HWY_NOINLINE void MultiplySlice(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                                float* sums, std::int64_t sums_stride) {
  const Floats d;
  const std::int64_t lanes = IntLanes();
  Float total[panels][rows][kVectors];
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const float* const from = sums + p * sums_stride + r * kWidth;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) total[p][r][v] = hn::LoadU(d, from + v * lanes);
    }
  }
  const std::uint8_t* integers = slice.integers;
  const std::byte* scales = slice.scales;
  for (std::int64_t group = 0; group < slice.groups; ++group, ++x) {
    Sum sum[panels][rows][kVectors];
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sum[p][r][v] = NoSum();
      }
    }
    AddGroup<Panel, rows, panels>(x, row_groups, slice, integers, sum);
    AddScaled<rows, panels>(x, row_groups, slice, scales, sum, total);
    integers += Panel::group_bytes;
    scales += Panel::scale_bytes;
  }
#pragma GCC unroll 4
  for (int p = 0; p < panels; ++p) {
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      float* const to = sums + p * sums_stride + r * kWidth;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) hn::StoreU(total[p][r][v], d, to + v * lanes);
    }
  }
}

// sums (panels, rows, 32) += prepared rows of x · panelsᵀ.
template <class Panel, int panels>
HWY_INLINE void MultiplyBeside(const RowGroup* x, std::int64_t rows, const std::byte* panel,
                               std::int64_t groups, float* sums) {
  const std::int64_t stride = rows * kWidth;
  const std::byte* const scales = panel + groups * Panel::group_bytes;
  for (std::int64_t group = 0; group < groups; group += kSliceGroups) {
    for (std::int64_t column = 0; column < kWidth; column += kVectors * IntLanes()) {
      const std::byte* const integers = panel + group * Panel::group_bytes + 4 * column;
      const Slice slice{
          .integers = reinterpret_cast<const std::uint8_t*>(integers),
          .scales = scales + group * Panel::scale_bytes + column * sizeof(std::uint16_t),
          .groups = std::min(kSliceGroups, groups - group),
          .panel_bytes = groups * (Panel::group_bytes + Panel::scale_bytes)};
      const RowGroup* row = x + group;
      float* row_sums = sums + column;
      const auto run = [&]<int some>(std::integral_constant<int, some>) {
        MultiplySlice<Panel, some, panels>(row, groups, slice, row_sums, stride);
        row += some * groups;
        row_sums += some * kWidth;
      };
      if constexpr (panels > 1) {
        run(std::integral_constant<int, 1>{});
        continue;
      }
      std::int64_t left = rows;
      for (; left >= 4; left -= 4) run(std::integral_constant<int, 4>{});
      if (left == 3) run(std::integral_constant<int, 3>{});
      if (left == 2) run(std::integral_constant<int, 2>{});
      if (left == 1) run(std::integral_constant<int, 1>{});
    }
  }
}

template <class Panel>
HWY_INLINE void MultiplyPanels(const float* prepared, std::int64_t rows, const PanelRun& run,
                               const PanelShape& shape, float* sums) {
  const auto* const x = reinterpret_cast<const RowGroup*>(prepared);
  const std::int64_t groups = shape.padded_inputs / kGroup;
  const std::int64_t panel_bytes = groups * (Panel::group_bytes + Panel::scale_bytes);
  std::int64_t p = 0;
  for (; kStreams > 1 && rows == 1 && p + kStreams <= run.count; p += kStreams) {
    MultiplyBeside<Panel, kStreams>(x, rows, run.first + p * panel_bytes, groups,
                                    sums + p * kWidth);
  }
  for (; p < run.count; ++p) {
    MultiplyBeside<Panel, 1>(x, rows, run.first + p * panel_bytes, groups,
                             sums + p * rows * kWidth);
  }
}

void MultiplyInt8(const float* prepared, std::int64_t rows, const PanelRun& run,
                  const PanelShape& shape, float* sums) {
  MultiplyPanels<Int8Panel>(prepared, rows, run, shape, sums);
}

void MultiplyInt4(const float* prepared, std::int64_t rows, const PanelRun& run,
                  const PanelShape& shape, float* sums) {
  MultiplyPanels<Int4Panel>(prepared, rows, run, shape, sums);
}

// 32 numbers. Where one is not finite, neither is the scale: all products of the group get NaN.
HWY_INLINE void QuantiseGroup(const float* x, int offset, RowGroup& to) {
  const Floats d;
  const Ints di;
  const std::int64_t lanes = IntLanes();
  // magnitudes as integers, whose order is the same and has NaN above infinity
  Int largest_bits = hn::Zero(di);
  for (std::int64_t i = 0; i < kGroup; i += lanes) {
    const Int bits = hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i)));
    largest_bits = hn::Max(largest_bits, bits);
  }
  const float largest = std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, largest_bits)));
  if (largest == 0.0F || !std::isfinite(largest)) {
    to = {.scale = largest == 0.0F ? 0.0F : std::numeric_limits<float>::quiet_NaN()};
    return;
  }
  to.scale = std::max(largest / 127.0F, smallest_scale);
  const Float inverse = hn::Set(d, 1.0F / to.scale);
  Int sum = hn::Zero(di);
  for (std::int64_t i = 0; i < kGroup; i += lanes) {
    const Int quantised = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse));
    sum = hn::Add(sum, quantised);
    const hn::Rebind<std::int8_t, Ints> di8;
    hn::StoreU(hn::DemoteTo(di8, quantised), di8, to.quantised + i);
  }
  to.correction = -offset * hn::GetLane(hn::SumOfLanes(di, sum));
}

void QuantiseRows(const float* x, std::int64_t rows, const PanelShape& shape, int offset,
                  float* prepared) {
  auto* to = reinterpret_cast<RowGroup*>(prepared);
  for (std::int64_t row = 0; row < rows; ++row, x += shape.inputs) {
    std::int64_t i = 0;
    for (; i + kGroup <= shape.inputs; i += kGroup) QuantiseGroup(x + i, offset, *to++);
    if (i < shape.inputs) {
      float last[kGroup] = {};
      std::copy(x + i, x + shape.inputs, last);
      QuantiseGroup(last, offset, *to++);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();
#undef HEED_DOT_PRODUCTS_OF_BYTES

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(MultiplyInt8);
HWY_EXPORT(MultiplyInt4);
HWY_EXPORT(QuantiseRows);

void quantise_rows(const float* x, std::int64_t rows, const PanelShape& shape, int offset,
                   float* prepared) {
  HWY_DYNAMIC_DISPATCH(QuantiseRows)(x, rows, shape, offset, prepared);
}

void multiply_int8(const float* prepared, std::int64_t rows, const PanelRun& run,
                   const PanelShape& shape, float* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyInt8)(prepared, rows, run, shape, sums);
}

void multiply_int4(const float* prepared, std::int64_t rows, const PanelRun& run,
                   const PanelShape& shape, float* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyInt4)(prepared, rows, run, shape, sums);
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
