// Prepared weights in integers of eight and four bits. x is rounded to eight bits as well, so that
// a group of 32 inputs is summed in integers, exactly; scales and f32 come in once per group.
#include "kernels/cpu/quantised_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/prepared_formats.h"
#include "tensor/dtype.h"

#define HWY_WANT_AVX3_DL  // a target that Highway leaves out unless asked
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantised_format.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/vector_math-inl.h"

// Machines of Highway's AVX3_DL have dot products of bytes (VNNI), but its old releases do not let
// the compiler use them.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define HEED_DOT_PRODUCTS_OF_BYTES 1
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512vnni")
#else
#define HEED_DOT_PRODUCTS_OF_BYTES 0
HWY_BEFORE_NAMESPACE();
#endif
namespace heed::kernels {
namespace HWY_NAMESPACE {

using Ints = hn::RebindToSigned<Floats>;
using Int = hn::Vec<Ints>;
using Bytes = hn::Repartition<std::uint8_t, Ints>;

constexpr std::int64_t kGroup = PreparedWeight::group;
constexpr std::int64_t kWidth = PreparedWeight::panel_outputs;
constexpr std::int64_t kQuads = kGroup / 4;      // of inputs, in a group
constexpr std::int64_t kQuadBytes = 4 * kWidth;  // of a panel's four inputs, or eight halves

HWY_INLINE std::int64_t IntLanes() { return static_cast<std::int64_t>(hn::Lanes(Ints())); }

// 32-bit lanes of four weights each, of consecutive outputs.
HWY_INLINE Int LoadQuads(const std::uint8_t* from) {
  return hn::BitCast(Ints(), hn::LoadU(Bytes(), from));
}

HWY_INLINE Int LowHalves(Int bytes) { return hn::And(bytes, hn::Set(Ints(), 0x0F0F0F0F)); }
HWY_INLINE Int HighHalves(Int bytes) { return LowHalves(hn::ShiftRight<4>(bytes)); }

HWY_INLINE Float LoadScales(Floats d, const std::uint16_t* from) {
  const hn::RebindToUnsigned<Floats> du;
  const hn::Rebind<std::uint16_t, Floats> du16;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(du16, from))));
}

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

// A part of a panel that stays in the first-level cache (32 KiB) for all rows: groups behind one
// another of two vectors of outputs.
constexpr int kVectors = 2;
constexpr std::int64_t kSliceGroups = 16;

struct Slice {
  const std::uint8_t* integers;
  const std::uint16_t* scales;
  std::int64_t groups;
};

// Bytes that weights are fetched ahead of their use. With 1 or 2 KiB two threads read one row's
// weights at 0.84 to 0.97 of the bandwidth of memory, with 4 or 8 KiB at 0.8 to 0.9.
constexpr std::int64_t kAhead = 2048;

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

// sums (rows, 32) += rows of x, row_groups apart, · sliceᵀ. Each row adds in the same order however
// many there are.
template <class Panel, int rows>
HWY_NOINLINE void MultiplySlice(const RowGroup* x, std::int64_t row_groups, const Slice& slice,
                                float* sums) {
  const Floats d;
  const std::int64_t lanes = IntLanes();
  Float total[rows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) total[r][v] = hn::LoadU(d, sums + r * kWidth + v * lanes);
  }
  const std::uint8_t* integers = slice.integers;
  const std::uint16_t* scales = slice.scales;
  for (std::int64_t group = 0; group < slice.groups; ++group) {
    Sum sum[rows][kVectors];
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] = NoSum();
    }
    constexpr std::int64_t loads = Panel::group_bytes / kQuadBytes;
#pragma GCC unroll 8
    for (std::int64_t load = 0; load < loads; ++load) {
      Int bytes[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const std::uint8_t* const from = integers + load * kQuadBytes + v * 4 * lanes;
        __builtin_prefetch(from + kAhead);
        bytes[v] = LoadQuads(from);
      }
      if constexpr (loads == kQuads) {
        const Weights weights[] = {WeightsOf(bytes[0]), WeightsOf(bytes[1])};
        AddQuads<rows>(weights, x, row_groups, load, sum);
      } else {
        const Weights low[] = {WeightsOf(LowHalves(bytes[0])), WeightsOf(LowHalves(bytes[1]))};
        AddQuads<rows>(low, x, row_groups, 2 * load, sum);
        const Weights high[] = {WeightsOf(HighHalves(bytes[0])), WeightsOf(HighHalves(bytes[1]))};
        AddQuads<rows>(high, x, row_groups, 2 * load + 1, sum);
      }
    }
    const Float weight_scales[] = {LoadScales(d, scales), LoadScales(d, scales + lanes)};
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const RowGroup& x_group = x[r * row_groups];
      const Int correction = hn::Set(Ints(), x_group.correction);
      const Float x_scale = hn::Set(d, x_group.scale);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Float dot = hn::ConvertTo(d, hn::Add(Total(sum[r][v]), correction));
        total[r][v] = hn::MulAdd(dot, hn::Mul(weight_scales[v], x_scale), total[r][v]);
      }
    }
    ++x;
    integers += Panel::group_bytes;
    scales += kWidth;
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(total[r][v], d, sums + r * kWidth + v * lanes);
  }
}

// sums (rows, 32) += prepared rows of x · panelᵀ.
template <class Panel>
HWY_INLINE void MultiplyPanel(const RowGroup* x, std::int64_t rows, const std::byte* panel,
                              std::int64_t groups, float* sums) {
  const auto* const integers = reinterpret_cast<const std::uint8_t*>(panel);
  const auto* const scales =
      reinterpret_cast<const std::uint16_t*>(panel + groups * Panel::group_bytes);
  for (std::int64_t group = 0; group < groups; group += kSliceGroups) {
    for (std::int64_t column = 0; column < kWidth; column += kVectors * IntLanes()) {
      const Slice slice{.integers = integers + group * Panel::group_bytes + 4 * column,
                        .scales = scales + group * kWidth + column,
                        .groups = std::min(kSliceGroups, groups - group)};
      const RowGroup* row = x + group;
      float* row_sums = sums + column;
      std::int64_t left = rows;
      for (; left >= 4; left -= 4, row += 4 * groups, row_sums += 4 * kWidth) {
        MultiplySlice<Panel, 4>(row, groups, slice, row_sums);
      }
      if (left == 3) MultiplySlice<Panel, 3>(row, groups, slice, row_sums);
      if (left == 2) MultiplySlice<Panel, 2>(row, groups, slice, row_sums);
      if (left == 1) MultiplySlice<Panel, 1>(row, groups, slice, row_sums);
    }
  }
}

template <class Panel>
HWY_INLINE void MultiplyPanels(const float* prepared, std::int64_t rows, const PanelRun& run,
                               const PanelShape& shape, float* sums) {
  const std::int64_t groups = shape.padded_inputs / kGroup;
  const std::int64_t panel_bytes = groups * (Panel::group_bytes + Panel::scale_bytes);
  for (std::int64_t p = 0; p < run.count; ++p) {
    MultiplyPanel<Panel>(reinterpret_cast<const RowGroup*>(prepared), rows,
                         run.first + p * panel_bytes, groups, sums + p * rows * kWidth);
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

// Weights (4, 32) of one vector's outputs from the quads of their integers.
template <int offset>
HWY_INLINE void RestoreQuads(Int quads, Float scale, float* to) {
  const Floats d;
  const Ints di;
#pragma GCC unroll 4
  for (int input = 0; input < 4; ++input, to += kWidth) {
    const Int integer = hn::Sub(hn::And(quads, hn::Set(di, 0xFF)), hn::Set(di, offset));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, integer), scale), d, to);
    quads = hn::ShiftRight<8>(quads);
  }
}

void ReadInt8(const std::byte* panel, const PanelShape& shape, std::int64_t first,
              std::int64_t count, float* to) {
  const auto* const integers = reinterpret_cast<const std::uint8_t*>(panel);
  const auto* const scales = reinterpret_cast<const std::uint16_t*>(
      panel + shape.padded_inputs / kGroup * Int8Panel::group_bytes);
  for (std::int64_t i = 0; i < count; i += 4) {
    const std::int64_t input = first + i;
    for (std::int64_t column = 0; column < kWidth; column += IntLanes()) {
      const Float scale = LoadScales(Floats(), scales + input / kGroup * kWidth + column);
      RestoreQuads<Int8Panel::offset>(LoadQuads(integers + input / 4 * kQuadBytes + 4 * column),
                                      scale, to + i * kWidth + column);
    }
  }
}

void ReadInt4(const std::byte* panel, const PanelShape& shape, std::int64_t first,
              std::int64_t count, float* to) {
  const auto* const integers = reinterpret_cast<const std::uint8_t*>(panel);
  const auto* const scales = reinterpret_cast<const std::uint16_t*>(
      panel + shape.padded_inputs / kGroup * Int4Panel::group_bytes);
  for (std::int64_t i = 0; i < count; i += 8) {
    const std::int64_t input = first + i;
    for (std::int64_t column = 0; column < kWidth; column += IntLanes()) {
      const Float scale = LoadScales(Floats(), scales + input / kGroup * kWidth + column);
      const Int bytes = LoadQuads(integers + input / 8 * kQuadBytes + 4 * column);
      float* const low = to + i * kWidth + column;
      RestoreQuads<Int4Panel::offset>(LowHalves(bytes), scale, low);
      RestoreQuads<Int4Panel::offset>(HighHalves(bytes), scale, low + 4 * kWidth);
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
HWY_EXPORT(ReadInt8);
HWY_EXPORT(ReadInt4);

namespace {

constexpr std::int64_t group = PreparedWeight::group;
constexpr std::int64_t width = PreparedWeight::panel_outputs;

template <class Panel>
std::int64_t panel_bytes(const PanelShape& shape) {
  return shape.padded_inputs / group * (Panel::group_bytes + Panel::scale_bytes);
}

// One output's 32 weights, offset, to `codes`. Returns the scale in bf16. It is rounded before the
// weights are divided by it, so that only their own rounding is left as an error: at most half a
// scale, as rounding it down by 2^-8 leaves magnitudes at most 127·(1 + 2^-8) < 127.5 times it.
template <class Panel>
std::uint16_t quantise(const float (&values)[group], std::uint8_t (&codes)[group]) {
  std::int32_t largest_bits = 0;  // as integers, magnitudes have the same order
  for (const float value : values) {
    largest_bits = std::max(largest_bits, std::bit_cast<std::int32_t>(std::abs(value)));
  }
  if (largest_bits == 0) {
    std::fill_n(codes, group, static_cast<std::uint8_t>(Panel::offset));
    return 0;
  }
  const float largest = std::bit_cast<float>(largest_bits);
  const std::uint16_t bits = f32_to_bf16(std::max(largest / Panel::largest, smallest_scale));
  const float scale = bf16_to_f32(bits);
  for (std::int64_t i = 0; i < group; ++i) {
    const int integer = static_cast<int>(std::nearbyint(values[i] / scale));
    codes[i] = static_cast<std::uint8_t>(integer + Panel::offset);
  }
  return bits;
}

// Where a group's 32 codes lie: fours in fours of bytes, or eights in the halves of four bytes.
void place(Int8Panel, const std::uint8_t (&codes)[group], std::uint8_t* to) {
  for (std::int64_t i = 0; i < group; i += 4, to += 4 * width) std::memcpy(to, codes + i, 4);
}

void place(Int4Panel, const std::uint8_t (&codes)[group], std::uint8_t* to) {
  for (std::int64_t i = 0; i < group; i += 8, to += 4 * width) {
    for (std::int64_t k = 0; k < 4; ++k) {
      to[k] = static_cast<std::uint8_t>(codes[i + k] | codes[i + 4 + k] << 4);
    }
  }
}

// Outputs that are not there keep scales of zero.
template <class Panel>
void write_panel(const float* weight, std::int64_t stride, std::int64_t outputs,
                 const PanelShape& shape, std::byte* panel) {
  const std::int64_t groups = shape.padded_inputs / group;
  auto* const integers = reinterpret_cast<std::uint8_t*>(panel);
  auto* const scales = reinterpret_cast<std::uint16_t*>(panel + groups * Panel::group_bytes);
  for (std::int64_t o = 0; o < width; ++o) {
    for (std::int64_t g = 0; g < groups; ++g) {
      float values[group] = {};
      if (o < outputs) {
        const float* const from = weight + o * stride;
        std::copy(from + g * group, from + std::min((g + 1) * group, shape.inputs), values);
      }
      std::uint8_t codes[group];
      scales[g * width + o] = quantise<Panel>(values, codes);
      place(Panel{}, codes, integers + g * Panel::group_bytes + 4 * o);
    }
  }
}

void read_int8(const std::byte* panel, const PanelShape& shape, std::int64_t first,
               std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(ReadInt8)(panel, shape, first, count, to);
}

void read_int4(const std::byte* panel, const PanelShape& shape, std::int64_t first,
               std::int64_t count, float* to) {
  HWY_DYNAMIC_DISPATCH(ReadInt4)(panel, shape, first, count, to);
}

std::int64_t prepared_rows_size(std::int64_t rows, const PanelShape& shape) {
  constexpr std::int64_t group_floats = sizeof(RowGroup) / sizeof(float);
  return rows * (shape.padded_inputs / group) * group_floats;
}

template <class Panel>
void prepare_rows(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared) {
  HWY_DYNAMIC_DISPATCH(QuantiseRows)(x, rows, shape, Panel::offset, prepared);
}

void multiply_int8(const float* prepared, std::int64_t rows, const PanelRun& run,
                   const PanelShape& shape, float* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyInt8)(prepared, rows, run, shape, sums);
}

void multiply_int4(const float* prepared, std::int64_t rows, const PanelRun& run,
                   const PanelShape& shape, float* sums) {
  HWY_DYNAMIC_DISPATCH(MultiplyInt4)(prepared, rows, run, shape, sums);
}

}  // namespace

PreparedFormat int8_format() {
  return {.panel_bytes = &panel_bytes<Int8Panel>,
          .write_panel = &write_panel<Int8Panel>,
          .read_panel = &read_int8,
          .few_rows = 64,
          .prepared_rows_size = &prepared_rows_size,
          .prepare_rows = &prepare_rows<Int8Panel>,
          .multiply_panels = &multiply_int8};
}

PreparedFormat int4_format() {
  return {.panel_bytes = &panel_bytes<Int4Panel>,
          .write_panel = &write_panel<Int4Panel>,
          .read_panel = &read_int4,
          .few_rows = 64,
          .prepared_rows_size = &prepared_rows_size,
          .prepare_rows = &prepare_rows<Int4Panel>,
          .multiply_panels = &multiply_int4};
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
