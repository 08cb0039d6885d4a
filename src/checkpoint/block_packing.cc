#include "checkpoint/block_packing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"
#include "tensor/dtype.h"

namespace heed {
namespace {

using Numbers = const float*;
using Block = std::uint8_t*;

void put16(Block at, std::uint16_t bits) {
  at[0] = static_cast<std::uint8_t>(bits);
  at[1] = static_cast<std::uint8_t>(bits >> 8);
}

// Writes a scale in f16, and returns what it is there.
float put_scale(Block at, float scale) {
  const std::uint16_t bits = f32_to_f16(scale);
  const float rounded = f16_to_f32(bits);
  require(std::isfinite(rounded), ErrorCode::unsupported,
          "a block's scale of {} is beyond the largest that it can be stored as, 65504", scale);
  put16(at, bits);
  return rounded;
}

// x / scale as the nearest integer in [least, most]; 0, or what is nearest to it, for no scale.
int nearest(float x, float scale, int least, int most) {
  const float quotient = scale == 0 ? 0.0F : x / scale;
  return static_cast<int>(
      std::lround(std::clamp(quotient, static_cast<float>(least), static_cast<float>(most))));
}

// The number with the largest magnitude, with its sign.
float extreme(Numbers x, int count) {
  float found = 0;
  for (int i = 0; i < count; ++i) {
    if (std::abs(x[i]) > std::abs(found)) found = x[i];
  }
  return found;
}

void pack_f32(Numbers x, Block out) { std::memcpy(out, x, sizeof(float)); }
void pack_bf16(Numbers x, Block out) {
  const std::uint16_t bits = f32_to_bf16(*x);
  require(std::isfinite(bf16_to_f32(bits)), ErrorCode::unsupported,
          "the number {} is not finite in BF16", *x);
  put16(out, bits);
}
void pack_f16(Numbers x, Block out) {
  const std::uint16_t bits = f32_to_f16(*x);
  require(std::isfinite(f16_to_f32(bits)), ErrorCode::unsupported,
          "the number {} is beyond the largest of F16, 65504", *x);
  put16(out, bits);
}

void pack_q8_0(Numbers x, Block out) {
  const float scale = put_scale(out, std::abs(extreme(x, 32)) / 127);
  for (int j = 0; j < 32; ++j) {
    out[2 + j] =
        static_cast<std::uint8_t>(static_cast<std::int8_t>(nearest(x[j], scale, -127, 127)));
  }
}

// Numbers j and j + 16 share a byte.
void pack_q4_0(Numbers x, Block out) {
  const float scale = put_scale(out, extreme(x, 32) / -8);
  for (int j = 0; j < 16; ++j) {
    const int low = nearest(x[j], scale, -8, 7) + 8;
    const int high = nearest(x[j + 16], scale, -8, 7) + 8;
    out[2 + j] = static_cast<std::uint8_t>(low | high << 4);
  }
}

// Sixteen bytes of low halves and, before them, a bit a number.
void put_five_bits(const std::array<int, 32>& values, Block fifth, Block halves) {
  std::uint32_t bits = 0;
  for (std::size_t j = 0; j < 16; ++j) {
    halves[j] = static_cast<std::uint8_t>((values[j] & 15) | (values[j + 16] & 15) << 4);
  }
  for (std::size_t j = 0; j < 32; ++j) bits |= static_cast<std::uint32_t>(values[j] >> 4) << j;
  put16(fifth, static_cast<std::uint16_t>(bits));
  put16(fifth + 2, static_cast<std::uint16_t>(bits >> 16));
}

void pack_q5_0(Numbers x, Block out) {
  const float scale = put_scale(out, extreme(x, 32) / -16);
  std::array<int, 32> values{};
  for (std::size_t j = 0; j < 32; ++j) values[j] = nearest(x[j], scale, -16, 15) + 16;
  put_five_bits(values, out + 2, out + 6);
}

void pack_q5_1(Numbers x, Block out) {
  const auto [least, most] = std::minmax_element(x, x + 32);
  const float scale = put_scale(out, (*most - *least) / 31);
  const float minimum = put_scale(out + 2, *least);
  std::array<int, 32> values{};
  for (std::size_t j = 0; j < 32; ++j) values[j] = nearest(x[j] - minimum, scale, 0, 31);
  put_five_bits(values, out + 4, out + 8);
}

// Scales and minima of eight groups, six bits each, in 12 bytes.
void put_six_bits(const std::array<int, 8>& scales, const std::array<int, 8>& minima, Block out) {
  std::memset(out, 0, 12);
  for (int group = 0; group < 4; ++group) {
    const auto low = static_cast<std::size_t>(group), high = low + 4;
    out[group] = static_cast<std::uint8_t>(scales[low] | scales[high] >> 4 << 6);
    out[group + 4] = static_cast<std::uint8_t>(minima[low] | minima[high] >> 4 << 6);
    out[group + 8] = static_cast<std::uint8_t>((scales[high] & 15) | (minima[high] & 15) << 4);
  }
}

// 8 groups of 32 numbers: scale · integer − minimum, with integers from 0 to `most`. The integers,
// and what precedes them in the block.
std::array<int, 256> round_groups(Numbers x, int most, Block out) {
  std::array<float, 8> group_scales{}, group_minima{};
  for (std::size_t group = 0; group < 8; ++group) {
    const auto [least, largest] = std::minmax_element(x + group * 32, x + group * 32 + 32);
    const float floor = std::min(*least, 0.0F);
    group_scales[group] = (*largest - floor) / static_cast<float>(most);
    group_minima[group] = -floor;
  }
  const float scale = put_scale(out, *std::ranges::max_element(group_scales) / 63);
  const float minimum = put_scale(out + 2, *std::ranges::max_element(group_minima) / 63);
  std::array<int, 8> scales{}, minima{};
  std::array<int, 256> values{};
  for (std::size_t group = 0; group < 8; ++group) {
    scales[group] = nearest(group_scales[group], scale, 0, 63);
    minima[group] = nearest(group_minima[group], minimum, 0, 63);
    const float unit = scale * static_cast<float>(scales[group]);
    const float offset = minimum * static_cast<float>(minima[group]);
    for (std::size_t j = group * 32; j < group * 32 + 32; ++j) {
      values[j] = nearest(x[j] + offset, unit, 0, most);
    }
  }
  put_six_bits(scales, minima, out + 4);
  return values;
}

// 32 bytes hold two groups, the first in their low halves.
void put_halves(const std::array<int, 256>& values, Block halves) {
  for (std::size_t pair = 0; pair < 4; ++pair) {
    for (std::size_t j = 0; j < 32; ++j) {
      const int low = values[pair * 64 + j] & 15, high = values[pair * 64 + 32 + j] & 15;
      halves[pair * 32 + j] = static_cast<std::uint8_t>(low | high << 4);
    }
  }
}

void pack_q4_k(Numbers x, Block out) { put_halves(round_groups(x, 15, out), out + 16); }

void pack_q5_k(Numbers x, Block out) {
  const std::array<int, 256> values = round_groups(x, 31, out);
  std::memset(out + 16, 0, 32);
  for (std::size_t i = 0; i < 256; ++i) {
    out[16 + i % 32] |= static_cast<std::uint8_t>(values[i] >> 4 << (i / 32));
  }
  put_halves(values, out + 48);
}

// 16 groups of 16 numbers with scales of eight bits.
void pack_q6_k(Numbers x, Block out) {
  std::array<float, 16> group_scales{};
  for (std::size_t group = 0; group < 16; ++group) {
    group_scales[group] = extreme(x + group * 16, 16) / -32;
  }
  const float scale = put_scale(out + 208, extreme(group_scales.data(), 16) / -128);
  std::memset(out, 0, 192);
  for (std::size_t group = 0; group < 16; ++group) {
    const int of_group = nearest(group_scales[group], scale, -128, 127);
    out[192 + group] = static_cast<std::uint8_t>(static_cast<std::int8_t>(of_group));
    const float unit = scale * static_cast<float>(of_group);
    for (std::size_t i = group * 16; i < group * 16 + 16; ++i) {
      const int value = nearest(x[i], unit, -32, 31) + 32;
      const std::size_t side = i / 128, quarter = i % 128 / 32, j = i % 32;
      out[side * 64 + quarter % 2 * 32 + j] |=
          static_cast<std::uint8_t>((value & 15) << (quarter / 2 * 4));
      out[128 + side * 32 + j] |= static_cast<std::uint8_t>(value >> 4 << (quarter * 2));
    }
  }
}

using Pack = void (*)(Numbers x, Block out);

Pack pack_of(BlockType type) {
  switch (type) {
    case BlockType::f32: return pack_f32;
    case BlockType::f16: return pack_f16;
    case BlockType::bf16: return pack_bf16;
    case BlockType::q8_0: return pack_q8_0;
    case BlockType::q4_0: return pack_q4_0;
    case BlockType::q5_0: return pack_q5_0;
    case BlockType::q5_1: return pack_q5_1;
    case BlockType::q4_k: return pack_q4_k;
    case BlockType::q5_k: return pack_q5_k;
    case BlockType::q6_k: return pack_q6_k;
    default: return nullptr;
  }
}

}  // namespace

bool can_pack(BlockType type) { return pack_of(type) != nullptr; }

void pack_blocks(BlockType type, std::span<const float> numbers, std::span<std::byte> blocks) {
  const BlockLayout layout = block_layout(type);
  const Pack pack = pack_of(type);
  require(pack != nullptr, ErrorCode::unsupported, "heed does not write blocks of {}", layout.name);
  const std::int64_t count = std::ssize(numbers) / layout.values;
  require(
      count * layout.values == std::ssize(numbers) && count * layout.bytes == std::ssize(blocks),
      ErrorCode::invalid_argument,
      "{} bytes for {} numbers; a block of {} holds {} numbers in {} bytes", blocks.size(),
      numbers.size(), layout.name, layout.values, layout.bytes);
  const auto beyond = std::ranges::find_if(numbers, [](float x) { return !std::isfinite(x); });
  require(type == BlockType::f32 || beyond == numbers.end(), ErrorCode::unsupported,
          "the number {} has no place in blocks of {}", beyond == numbers.end() ? 0.0F : *beyond,
          layout.name);
  auto* const out = reinterpret_cast<Block>(blocks.data());
  for (std::int64_t block = 0; block < count; ++block) {
    pack(numbers.data() + block * layout.values, out + block * layout.bytes);
  }
}

}  // namespace heed
