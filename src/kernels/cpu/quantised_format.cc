// Prepared weights in integers: quantising to int8 and int4, packing and dequantising.
#include "kernels/cpu/quantised_format.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/bf16.h"
#include "kernels/cpu/integer_groups.h"
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
template <class Panel>
HWY_INLINE void RestoreQuads(Int quads, Float scale, Float minimum, float* to,
                             std::int64_t to_stride) {
  const Floats d;
  const Ints di;
#pragma GCC unroll 4
  for (int input = 0; input < 4; ++input, to += to_stride) {
    const Int integer = hn::Sub(hn::And(quads, hn::Set(di, 0xFF)), hn::Set(di, Panel::offset));
    const Float weight = hn::Mul(hn::ConvertTo(d, integer), scale);
    hn::StoreU(kHasMinima<typename Panel::Scales> ? hn::Sub(weight, minimum) : weight, d, to);
    quads = hn::ShiftRight<8>(quads);
  }
}

// A group, from its quad `quad` on.
template <class Panel, int quad>
HWY_INLINE void RestoreGroup(const std::uint8_t* integers, const std::byte* scales,
                             std::int64_t group, std::int64_t column, float* to,
                             std::int64_t to_stride) {
  using Scales = typename Panel::Scales;
  constexpr int half = quad * Scales::halves / static_cast<int>(kQuads);
  const Float scale = ScalesOf(Scales{}, scales, group, half, column);
  Float minimum = scale;
  if constexpr (kHasMinima<Scales>) minimum = MinimaOf(Scales{}, scales, group, half, column);
  const Int bytes = LoadQuads(integers + quad / kQuadsOfLoad<Panel> * kQuadBytes);
  RestoreQuads<Panel>(QuadOf<Panel, quad>(bytes, integers), scale, minimum, to, to_stride);
  if constexpr (quad + 1 < kQuads) {
    RestoreGroup<Panel, quad + 1>(integers, scales, group, column, to + 4 * to_stride, to_stride);
  }
}

template <class Panel>
HWY_NOINLINE void ReadPanel(const PanelRun& run, std::int64_t first, std::int64_t count,
                            const RestoredPanel& restored) {
  using Scales = typename Panel::Scales;
  const auto* const integers = reinterpret_cast<const std::uint8_t*>(run.first);
  for (std::int64_t column = 0; column < kWidth; column += IntLanes()) {
    float* to = restored.column(column);
    for (std::int64_t group = first / kGroup; group < (first + count) / kGroup; ++group) {
      RestoreGroup<Panel, 0>(integers + group * Panel::group_bytes + 4 * column,
                             run.scales + group / Scales::groups * Scales::bytes,
                             group % Scales::groups, column, to, restored.columns);
      to += kGroup * restored.columns;
    }
  }
}

void ReadIntegers(WeightFormat format, const PanelRun& run, std::int64_t first, std::int64_t count,
                  const RestoredPanel& restored) {
  with_integer_panel(format,
                     [&]<class Panel>(Panel) { ReadPanel<Panel>(run, first, count, restored); });
}

}  // namespace HWY_NAMESPACE
}  // namespace heed::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heed::kernels {

HWY_EXPORT(ReadIntegers);

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
      GroupQuads quads;
      std::memcpy(quads.data(), codes, sizeof(codes));
      place_integers<Panel>(quads, integers + g * Panel::group_bytes + 4 * o);
    }
  }
}

template <WeightFormat format>
void read_panel(const PanelRun& run, const PanelShape&, std::int64_t first, std::int64_t count,
                const RestoredPanel& restored) {
  HWY_DYNAMIC_DISPATCH(ReadIntegers)(format, run, first, count, restored);
}

template <WeightFormat format>
void multiply_panels(const float* prepared, std::int64_t rows, const PanelRun& run,
                     const PanelShape& shape, float* sums) {
  multiply_integers(format, prepared, rows, run, shape, sums);
}

std::int64_t prepared_rows_size(std::int64_t rows, const PanelShape& shape) {
  constexpr std::int64_t group_floats = sizeof(RowGroup) / sizeof(float);
  return rows * (shape.padded_inputs / group) * group_floats;
}

std::int64_t few_rows(WeightFormat format) {
  if (!integers_are_allowed()) return 0;
  return multiplies_long_rows_in_integers(format) ? std::numeric_limits<std::int64_t>::max() : 64;
}

template <WeightFormat format, class Panel>
constexpr decltype(PreparedFormat::write_panel) writer() {
  if constexpr (holds_blocks(format)) {
    return nullptr;
  } else {
    return &write_panel<Panel>;
  }
}

template <WeightFormat format, class Panel>
PreparedFormat format_of_panel() {
  return {.panel_bytes = &panel_bytes<Panel>,
          .scale_bytes = &scale_bytes<Panel>,
          .write_panel = writer<format, Panel>(),
          .read_panel = &read_panel<format>,
          .few_rows = few_rows(format),
          .prepared_rows_size = &prepared_rows_size,
          .prepare_rows = &quantise_rows,
          .multiply_panels = &multiply_panels<format>};
}

}  // namespace

PreparedFormat int8_format() { return format_of_panel<WeightFormat::int8, Int8Panel>(); }
PreparedFormat int4_format() { return format_of_panel<WeightFormat::int4, Int4Panel>(); }

PreparedFormat block_format(WeightFormat format) {
  using enum WeightFormat;
  switch (format) {
    case q8_0: return format_of_panel<q8_0, Q8_0Panel>();
    case q4_0: return format_of_panel<q4_0, Q4_0Panel>();
    case q4_1: return format_of_panel<q4_1, Q4_1Panel>();
    case q5_0: return format_of_panel<q5_0, Q5_0Panel>();
    case q5_1: return format_of_panel<q5_1, Q5_1Panel>();
    case q2_k: return format_of_panel<q2_k, Q2KPanel>();
    case q3_k: return format_of_panel<q3_k, Q3KPanel>();
    case q4_k: return format_of_panel<q4_k, Q4KPanel>();
    case q5_k: return format_of_panel<q5_k, Q5KPanel>();
    case q6_k: return format_of_panel<q6_k, Q6KPanel>();
    case f32:
    case bf16:
    case int8:
    case int4: break;
  }
  fail(ErrorCode::invalid_argument, "weights in {} are not blocks", weight_format_name(format));
}

}  // namespace heed::kernels
#endif  // HWY_ONCE
