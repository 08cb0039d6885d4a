// How panels of prepared weights lie, on the device: their scales and their integers.
#pragma once

#include "kernels/cuda/device_code.h"
#include "kernels/cuda/prepared_products.h"

namespace heed_cuda {

constexpr int group_inputs = 32;
constexpr int group_quads = group_inputs / 4;  // words of four inputs each
constexpr int panel_outputs = warp_lanes;      // lane = output

HEED_DEVICE float value_of_bf16(unsigned bits) { return __uint_as_float(bits << 16); }

// Of a finite f16: its exponent has another bias, which a product corrects for denormal ones too.
HEED_DEVICE float value_of_f16(unsigned short bits) {
  const float magnitude = __uint_as_float((bits & 0x7FFFU) << 13) * 0x1p112F;
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

HEED_DEVICE unsigned short half_at(const unsigned char* array, int output) {
  return reinterpret_cast<const unsigned short*>(array)[output];
}

// --- Scales of an output in a group, as kernels/cpu/quantised_format.h lays them out ---

template <int halves_, bool has_minima_>
struct GroupScales {
  static constexpr int halves = halves_;
  static constexpr bool has_minima = has_minima_;
  float scale[halves];
  float minimum[halves];  // where there are minima
};

struct Bf16Scales : GroupScales<1, false> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    scale[0] = value_of_bf16(half_at(scales + group * 64, output));
  }
  static constexpr long long group_bytes = 64;
};

struct F16Scales : GroupScales<1, false> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    scale[0] = value_of_f16(half_at(scales + group * 64, output));
  }
  static constexpr long long group_bytes = 64;
};

struct F16ScalesAndMinima : GroupScales<1, true> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    scale[0] = value_of_f16(half_at(scales + group * 128, output));
    minimum[0] = value_of_f16(half_at(scales + group * 128 + 64, output));
  }
  static constexpr long long group_bytes = 128;
};

// Super-blocks of eight groups: `factors` arrays of f16, then two arrays of bytes a group.
template <int factors>
struct FactoredBlock {
  static constexpr long long bytes = factors * 64 + 8 * 64;
  static constexpr long long group_bytes = bytes / 8;  // on average

  const unsigned char* begin;
  const unsigned char* integers;  // of the group

  HEED_DEVICE FactoredBlock(const unsigned char* scales, long long group)
      : begin(scales + group / 8 * bytes), integers(begin + factors * 64 + group % 8 * 64) {}
  HEED_DEVICE float factor(int array, int output) const {
    return value_of_f16(half_at(begin + array * 64, output));
  }
  HEED_DEVICE unsigned char byte(int array, int output) const {
    return integers[array * panel_outputs + output];
  }
};

struct FactoredScalesAndMinima : GroupScales<1, true> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    const FactoredBlock<2> block(scales, group);
    scale[0] = block.factor(0, output) * static_cast<float>(block.byte(0, output));
    minimum[0] = block.factor(1, output) * static_cast<float>(block.byte(1, output));
  }
  static constexpr long long group_bytes = FactoredBlock<2>::group_bytes;
};

struct FactoredHalfScales : GroupScales<2, false> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    const FactoredBlock<1> block(scales, group);
    const float factor = block.factor(0, output);
    HEED_UNROLL for (int half = 0; half < 2; ++half) {
      scale[half] = factor * static_cast<float>(static_cast<signed char>(block.byte(half, output)));
    }
  }
  static constexpr long long group_bytes = FactoredBlock<1>::group_bytes;
};

struct FactoredHalfScalesAndMinima : GroupScales<2, true> {
  HEED_DEVICE void load(const unsigned char* scales, long long group, int output) {
    const FactoredBlock<2> block(scales, group);
    const float factor = block.factor(0, output), of_minima = block.factor(1, output);
    HEED_UNROLL for (int half = 0; half < 2; ++half) {
      const unsigned char both = block.byte(half, output);
      scale[half] = factor * static_cast<float>(both & 15U);
      minimum[half] = of_minima * static_cast<float>(both >> 4);
    }
  }
  static constexpr long long group_bytes = FactoredBlock<2>::group_bytes;
};

// --- Integers of an output in a group ---

template <int bits_, int offset_, class Scales_>
struct IntegerPanel {
  using Scales = Scales_;
  static constexpr int bits = bits_;  // and 32-bit words of an output in a group
  // What is subtracted from the integers; those of eight bits are signed bytes instead.
  static constexpr int offset = bits == 8 ? 0 : offset_;
  // Groups that are loaded together, so that enough bytes are under way.
  static constexpr int together = bits > 4 ? 2 : bits > 2 ? 4 : 8;
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
HeedCudaResult with_integer_panel(int format, Body body) {
  switch (format) {
    case heed_panel_int8: return body(Int8Panel());
    case heed_panel_int4: return body(Int4Panel());
    case heed_panel_q8_0: return body(Q8_0Panel());
    case heed_panel_q4_0: return body(Q4_0Panel());
    case heed_panel_q4_1: return body(Q4_1Panel());
    case heed_panel_q5_0: return body(Q5_0Panel());
    case heed_panel_q5_1: return body(Q5_1Panel());
    case heed_panel_q2_k: return body(Q2KPanel());
    case heed_panel_q3_k: return body(Q3KPanel());
    case heed_panel_q4_k: return body(Q4KPanel());
    case heed_panel_q5_k: return body(Q5KPanel());
    case heed_panel_q6_k: return body(Q6KPanel());
    default: return "a format of weights that the library does not have";
  }
}

// A group's words, of the lane's output: a load of a warp is 128 consecutive bytes.
template <class Panel>
HEED_DEVICE void load_words(const unsigned* integers, long long group,
                            unsigned (&words)[Panel::bits]) {
  const unsigned* const from = integers + group * (Panel::bits * panel_outputs);
  HEED_UNROLL for (int i = 0; i < Panel::bits; ++i) words[i] = from[i * panel_outputs];
}

// The bits of every byte that are at `from`, moved to `to`, where the mask selects them.
HEED_DEVICE unsigned moved_bits(unsigned word, int from, int to, unsigned mask) {
  return (from > to ? word >> (from - to) : word << (to - from)) & mask;
}

// Four integers of a byte each, of inputs 4·quad to 4·quad + 3. `quad` is a constant where this is
// inlined.
template <class Panel>
HEED_DEVICE unsigned quad_of(const unsigned (&words)[Panel::bits], int quad) {
  constexpr int bits = Panel::bits;
  if constexpr (bits == 8) {
    return words[quad] ^ 0x80808080U;
  } else if constexpr (bits >= 4) {
    const unsigned halves = words[quad / 2] >> (quad % 2 * 4) & 0x0F0F0F0FU;
    if constexpr (bits == 5) return halves | moved_bits(words[4], quad, 4, 0x10101010U);
    if constexpr (bits == 6) {
      return halves | moved_bits(words[4 + quad / 4], quad % 4 * 2, 4, 0x30303030U);
    }
    return halves;
  } else {
    const unsigned pairs = words[quad / 4] >> (quad % 4 * 2) & 0x03030303U;
    if constexpr (bits == 3) return pairs | moved_bits(words[2], quad, 2, 0x04040404U);
    return pairs;
  }
}

}  // namespace heed_cuda
