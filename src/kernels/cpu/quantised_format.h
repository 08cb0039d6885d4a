// Layout of int8 and int4 panels, and of prepared rows of x.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/prepared_weight.h"

namespace heed::kernels {

// Integers are stored unsigned: offset + quantised, |quantised| <= largest.
struct IntegerPanel {
  static constexpr std::int64_t scale_bytes =
      PreparedWeight::panel_outputs *
      static_cast<std::int64_t>(sizeof(std::uint16_t));  // of a group
};

struct Int8Panel : IntegerPanel {
  static constexpr int largest = 127;
  static constexpr int offset = 128;
  static constexpr std::int64_t group_bytes =
      PreparedWeight::group * PreparedWeight::panel_outputs;  // 32 inputs of 32 outputs
};

struct Int4Panel : IntegerPanel {
  static constexpr int largest = 7;
  static constexpr int offset = 8;
  static constexpr std::int64_t group_bytes =
      PreparedWeight::group * PreparedWeight::panel_outputs / 2;
};

// A group of a row of x: x = scale · quantised, |quantised| <= 127.
struct RowGroup {
  float scale;
  std::int32_t correction;  // −offset · Σ quantised: what the weights' offset adds to a dot product
  std::int8_t quantised[PreparedWeight::group];
};
static_assert(sizeof(RowGroup) % sizeof(float) == 0 && alignof(RowGroup) == alignof(float));

// The least scale: smaller ones would be denormal and lose precision. Smaller numbers get smaller
// integers instead.
inline constexpr float smallest_scale = 0x1p-126F;

}  // namespace heed::kernels
