// Layout of panels of integers, and of prepared rows of x.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "kernels/prepared_weight.h"

namespace heed::kernels {

// How the scales of a panel are stored: in super-blocks of `groups` groups of 32 inputs, of `bytes`
// bytes. A group has one scale, or one for each half of it; with minima, a weight is
// scale · integer − minimum. Arrays hold a number for each of the 32 outputs.
template <int groups_, int halves_, std::int64_t bytes_>
struct ScaleLayout {
  static constexpr int groups = groups_;
  static constexpr int halves = halves_;  // scales of a group
  static constexpr std::int64_t bytes = bytes_;
  static_assert(bytes % groups == 0);
  static constexpr std::int64_t group_bytes = bytes / groups;  // on average
};

inline constexpr std::int64_t panel_width = PreparedWeight::panel_outputs;

struct Bf16Scales : ScaleLayout<1, 1, 2 * panel_width> {};
struct F16Scales : ScaleLayout<1, 1, 2 * panel_width> {};
// Scales, then minima, in f16.
struct F16ScalesAndMinima : ScaleLayout<1, 1, 4 * panel_width> {
  static constexpr std::int64_t minima = 2 * panel_width;  // where they begin
};

// Super-blocks of eight groups: f16 factors for the scales and the minima, and the integer scale
// and minimum of each group, which the factors multiply.
template <int halves_, std::int64_t factors_>
struct FactoredScales : ScaleLayout<8, halves_, 2 * factors_ * panel_width + 8 * 2 * panel_width> {
  static constexpr std::int64_t factors = factors_;
  // Where the integers of a group begin.
  static constexpr std::int64_t integers(std::int64_t group) {
    return 2 * factors * panel_width + group * 2 * panel_width;
  }
};
// A scale and a minimum of eight bits.
struct FactoredScalesAndMinima : FactoredScales<1, 2> {
  static constexpr std::int64_t minima = 2 * panel_width;  // where their factors begin
};
// A signed scale of eight bits for each half.
struct FactoredHalfScales : FactoredScales<2, 1> {};
// A byte for each half: a scale of four bits below, a minimum above.
struct FactoredHalfScalesAndMinima : FactoredScales<2, 2> {
  static constexpr std::int64_t minima = 2 * panel_width;  // where their factors begin
};

// Integers are stored unsigned: offset + integer.
template <int bits_, int offset_, class Scales_>
struct IntegerPanel {
  using Scales = Scales_;
  static constexpr int bits = bits_;
  static constexpr int offset = offset_;
  static constexpr int largest = offset - 1;  // magnitude of quantised weights
  static constexpr std::int64_t group_bytes =
      PreparedWeight::group * panel_width * bits / 8;  // 32 inputs of 32 outputs
  static constexpr std::int64_t scale_bytes = Scales::group_bytes;
};

using Int8Panel = IntegerPanel<8, 128, Bf16Scales>;
using Int4Panel = IntegerPanel<4, 8, Bf16Scales>;
using Q8_0Panel = IntegerPanel<8, 128, F16Scales>;
using Q4_0Panel = IntegerPanel<4, 8, F16Scales>;
using Q4_1Panel = IntegerPanel<4, 0, F16ScalesAndMinima>;
using Q5_0Panel = IntegerPanel<5, 16, F16Scales>;
using Q5_1Panel = IntegerPanel<5, 0, F16ScalesAndMinima>;
using Q2KPanel = IntegerPanel<2, 0, FactoredHalfScalesAndMinima>;
using Q3KPanel = IntegerPanel<3, 4, FactoredHalfScales>;
using Q4KPanel = IntegerPanel<4, 0, FactoredScalesAndMinima>;
using Q5KPanel = IntegerPanel<5, 0, FactoredScalesAndMinima>;
using Q6KPanel = IntegerPanel<6, 32, FactoredHalfScales>;

// Calls body(panel) with the panel of a format that holds integers.
template <class Body>
decltype(auto) with_integer_panel(WeightFormat format, Body&& body) {
  switch (format) {
    case WeightFormat::int8: return body(Int8Panel{});
    case WeightFormat::int4: return body(Int4Panel{});
    case WeightFormat::q8_0: return body(Q8_0Panel{});
    case WeightFormat::q4_0: return body(Q4_0Panel{});
    case WeightFormat::q4_1: return body(Q4_1Panel{});
    case WeightFormat::q5_0: return body(Q5_0Panel{});
    case WeightFormat::q5_1: return body(Q5_1Panel{});
    case WeightFormat::q2_k: return body(Q2KPanel{});
    case WeightFormat::q3_k: return body(Q3KPanel{});
    case WeightFormat::q4_k: return body(Q4KPanel{});
    case WeightFormat::q5_k: return body(Q5KPanel{});
    case WeightFormat::q6_k: return body(Q6KPanel{});
    case WeightFormat::f32:
    case WeightFormat::bf16: break;
  }
  fail(ErrorCode::invalid_argument, "weights in {} are not integers", weight_format_name(format));
}

// A group of a row of x: x = scale · quantised, |quantised| <= 127. With the sums, the weights'
// offsets and minima are multiplied once for all inputs of a group, or of its first half.
struct RowGroup {
  float scale;
  std::int32_t minus_sum;        // −Σ quantised
  std::int32_t minus_first_sum;  // of the first 16
  float minus_scaled_sum;        // −scale · Σ quantised
  std::int8_t quantised[PreparedWeight::group];
};
static_assert(sizeof(RowGroup) % sizeof(float) == 0 && alignof(RowGroup) == alignof(float));

// The least scale: smaller ones would be denormal and lose precision. Smaller numbers get smaller
// integers instead.
inline constexpr float smallest_scale = 0x1p-126F;

}  // namespace heed::kernels
