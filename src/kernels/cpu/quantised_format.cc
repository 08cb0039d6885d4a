// Prepared weights in int8 and int4: quantising, packing and dequantising.
#include "kernels/cpu/quantised_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/bf16.h"
#include "kernels/cpu/prepared_formats.h"
#include "kernels/cpu/quantised_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/quantised_format.cc"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "kernels/cpu/quantised_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed::kernels {
namespace HWY_NAMESPACE {

// Weights (4, 32) of one vector's outputs from the quads of their integers.
template <int offset>
HWY_INLINE void RestoreQuads(Int quads, Float scale, float* to, std::int64_t to_stride) {
  const Floats d;
  const Ints di;
#pragma GCC unroll 4
  for (int input = 0; input < 4; ++input, to += to_stride) {
    const Int integer = hn::Sub(hn::And(quads, hn::Set(di, 0xFF)), hn::Set(di, offset));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, integer), scale), d, to);
    quads = hn::ShiftRight<8>(quads);
  }
}

void ReadInt8(const PanelRun& run, std::int64_t first, std::int64_t count,
              const RestoredPanel& restored) {
  const auto* const integers = reinterpret_cast<const std::uint8_t*>(run.first);
  const auto* const scales = reinterpret_cast<const std::uint16_t*>(run.scales);
  for (std::int64_t column = 0; column < kWidth; column += IntLanes()) {
    float* to = restored.column(column);
    for (std::int64_t input = first; input < first + count; input += 4) {
      const Float scale = LoadScales(Floats(), scales + input / kGroup * kWidth + column);
      RestoreQuads<Int8Panel::offset>(LoadQuads(integers + input / 4 * kQuadBytes + 4 * column),
                                      scale, to, restored.columns);
      to += 4 * restored.columns;
    }
  }
}

void ReadInt4(const PanelRun& run, std::int64_t first, std::int64_t count,
              const RestoredPanel& restored) {
  const auto* const integers = reinterpret_cast<const std::uint8_t*>(run.first);
  const auto* const scales = reinterpret_cast<const std::uint16_t*>(run.scales);
  for (std::int64_t column = 0; column < kWidth; column += IntLanes()) {
    float* to = restored.column(column);
    for (std::int64_t input = first; input < first + count; input += 8) {
      const Float scale = LoadScales(Floats(), scales + input / kGroup * kWidth + column);
      const Int bytes = LoadQuads(integers + input / 8 * kQuadBytes + 4 * column);
      RestoreQuads<Int4Panel::offset>(LowHalves(bytes), scale, to, restored.columns);
      to += 4 * restored.columns;
      RestoreQuads<Int4Panel::offset>(HighHalves(bytes), scale, to, restored.columns);
      to += 4 * restored.columns;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(ReadInt8);
HWY_EXPORT(ReadInt4);

namespace {

constexpr std::int64_t group = PreparedWeight::group;
constexpr std::int64_t width = PreparedWeight::panel_outputs;

template <class Panel>
std::int64_t panel_bytes(const PanelShape& shape) {
  return shape.padded_inputs / group * Panel::group_bytes;
}

template <class Panel>
std::int64_t scale_bytes(const PanelShape& shape) {
  return shape.padded_inputs / group * Panel::scale_bytes;
}

// One output's 32 weights, offset, to `codes`. Returns the scale in bf16. It is rounded before the
// weights are divided by it, so that the only error is their own rounding: at most half a scale,
// because rounding it down by 2^-8 leaves magnitudes at most 127·(1 + 2^-8) < 127.5 times it.
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

// Positions of a group's 32 codes: four in four bytes, or eight in the halves of four bytes.
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

// Missing outputs keep scales of zero.
template <class Panel>
void write_panel(const float* weight, std::int64_t stride, std::int64_t outputs,
                 const PanelShape& shape, const NewPanel& to) {
  const std::int64_t groups = shape.padded_inputs / group;
  auto* const integers = reinterpret_cast<std::uint8_t*>(to.panel);
  auto* const scales = reinterpret_cast<std::uint16_t*>(to.scales);
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

void read_int8(const PanelRun& run, const PanelShape&, std::int64_t first, std::int64_t count,
               const RestoredPanel& restored) {
  HWY_DYNAMIC_DISPATCH(ReadInt8)(run, first, count, restored);
}

void read_int4(const PanelRun& run, const PanelShape&, std::int64_t first, std::int64_t count,
               const RestoredPanel& restored) {
  HWY_DYNAMIC_DISPATCH(ReadInt4)(run, first, count, restored);
}

std::int64_t prepared_rows_size(std::int64_t rows, const PanelShape& shape) {
  constexpr std::int64_t group_floats = sizeof(RowGroup) / sizeof(float);
  return rows * (shape.padded_inputs / group) * group_floats;
}

template <class Panel>
void prepare_rows(const float* x, std::int64_t rows, const PanelShape& shape, float* prepared) {
  quantise_rows(x, rows, shape, Panel::offset, prepared);
}

std::int64_t few_rows(WeightFormat format) {
  if (!integers_are_allowed()) return 0;
  return multiplies_long_rows_in_integers(format) ? std::numeric_limits<std::int64_t>::max() : 64;
}

}  // namespace

PreparedFormat int8_format() {
  return {.panel_bytes = &panel_bytes<Int8Panel>,
          .scale_bytes = &scale_bytes<Int8Panel>,
          .write_panel = &write_panel<Int8Panel>,
          .read_panel = &read_int8,
          .few_rows = few_rows(WeightFormat::int8),
          .prepared_rows_size = &prepared_rows_size,
          .prepare_rows = &prepare_rows<Int8Panel>,
          .multiply_panels = &multiply_int8};
}

PreparedFormat int4_format() {
  return {.panel_bytes = &panel_bytes<Int4Panel>,
          .scale_bytes = &scale_bytes<Int4Panel>,
          .write_panel = &write_panel<Int4Panel>,
          .read_panel = &read_int4,
          .few_rows = few_rows(WeightFormat::int4),
          .prepared_rows_size = &prepared_rows_size,
          .prepare_rows = &prepare_rows<Int4Panel>,
          .multiply_panels = &multiply_int4};
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
