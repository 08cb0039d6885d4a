#include "checkpoint/weight_blocks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bf16.h"
#include "base/error.h"
#include "tensor/dtype.h"

namespace heed {
namespace {

using Bytes = const std::uint8_t*;

constexpr std::array<std::pair<BlockType, BlockLayout>, 18> layouts = {{
    {BlockType::f32, {"F32", 1, 4}},
    {BlockType::f16, {"F16", 1, 2}},
    {BlockType::q4_0, {"Q4_0", 32, 18}},
    {BlockType::q4_1, {"Q4_1", 32, 20}},
    {BlockType::q5_0, {"Q5_0", 32, 22}},
    {BlockType::q5_1, {"Q5_1", 32, 24}},
    {BlockType::q8_0, {"Q8_0", 32, 34}},
    {BlockType::q2_k, {"Q2_K", 256, 84}},
    {BlockType::q3_k, {"Q3_K", 256, 110}},
    {BlockType::q4_k, {"Q4_K", 256, 144}},
    {BlockType::q5_k, {"Q5_K", 256, 176}},
    {BlockType::q6_k, {"Q6_K", 256, 210}},
    {BlockType::i8, {"I8", 1, 1}},
    {BlockType::i16, {"I16", 1, 2}},
    {BlockType::i32, {"I32", 1, 4}},
    {BlockType::i64, {"I64", 1, 8}},
    {BlockType::f64, {"F64", 1, 8}},
    {BlockType::bf16, {"BF16", 1, 2}},
}};

constexpr std::array<std::pair<std::uint32_t, std::string_view>, 22> unread_types = {{
    {4, "Q4_2"},        {5, "Q4_3"},     {9, "Q8_1"},   {15, "Q8_K"},       {16, "IQ2_XXS"},
    {17, "IQ2_XS"},     {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},     {21, "IQ3_S"},
    {22, "IQ2_S"},      {23, "IQ4_XS"},  {29, "IQ1_M"}, {31, "Q4_0_4_4"},   {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},   {34, "TQ1_0"},   {35, "TQ2_0"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"}, {39, "MXFP4"},
}};

std::uint16_t bits16(Bytes bytes) { return static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8); }

std::uint32_t bits32(Bytes bytes) {
  return bits16(bytes) | static_cast<std::uint32_t>(bits16(bytes + 2)) << 16;
}

float half(Bytes bytes) { return f16_to_f32(bits16(bytes)); }

template <class Number>
Number number(Bytes bytes) {
  Number value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

void unpack_f32(Bytes block, float* out) { *out = number<float>(block); }
void unpack_f16(Bytes block, float* out) { *out = half(block); }
void unpack_bf16(Bytes block, float* out) { *out = bf16_to_f32(bits16(block)); }
void unpack_f64(Bytes block, float* out) { *out = static_cast<float>(number<double>(block)); }

// Blocks of 32: a scale, perhaps a minimum, perhaps fifth bits, then 16 bytes of low halves and
// high halves: number j is the low half of byte j, number j + 16 its high half.

void unpack_q4_0(Bytes block, float* out) {
  const float scale = half(block);
  const Bytes halves = block + 2;
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((halves[j] & 15) - 8) * scale;
    out[j + 16] = static_cast<float>((halves[j] >> 4) - 8) * scale;
  }
}

void unpack_q4_1(Bytes block, float* out) {
  const float scale = half(block);
  const float minimum = half(block + 2);
  const Bytes halves = block + 4;
  for (int j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(halves[j] & 15) * scale + minimum;
    out[j + 16] = static_cast<float>(halves[j] >> 4) * scale + minimum;
  }
}

// The number j (0 to 31) of a block whose fifth bits are `fifth`.
int five_bits(Bytes halves, std::uint32_t fifth, int j) {
  const int low = j < 16 ? halves[j] & 15 : halves[j - 16] >> 4;
  return low | static_cast<int>(fifth >> j & 1) << 4;
}

void unpack_q5_0(Bytes block, float* out) {
  const float scale = half(block);
  const std::uint32_t fifth = bits32(block + 2);
  for (int j = 0; j < 32; ++j) {
    out[j] = static_cast<float>(five_bits(block + 6, fifth, j) - 16) * scale;
  }
}

void unpack_q5_1(Bytes block, float* out) {
  const float scale = half(block);
  const float minimum = half(block + 2);
  const std::uint32_t fifth = bits32(block + 4);
  for (int j = 0; j < 32; ++j) {
    out[j] = static_cast<float>(five_bits(block + 8, fifth, j)) * scale + minimum;
  }
}

void unpack_q8_0(Bytes block, float* out) {
  const float scale = half(block);
  for (int j = 0; j < 32; ++j) {
    out[j] = static_cast<float>(static_cast<std::int8_t>(block[2 + j])) * scale;
  }
}

// Blocks of 256, in groups of 16 or 32 numbers whose scales are integers times the block's own.

// Two bits: 16 groups of 16. 32 bytes hold 128 numbers, the first 32 in their lowest bits.
void unpack_q2_k(Bytes block, float* out) {
  const Bytes scales = block;  // scale below, minimum above
  const float scale = half(block + 80);
  const float minimum = half(block + 82);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(scales[group] & 15);
    const float group_minimum = minimum * static_cast<float>(scales[group] >> 4);
    const Bytes pairs = block + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    for (int j = 0; j < 16; ++j) {
      out[group * 16 + j] = group_scale * static_cast<float>(pairs[j] >> shift & 3) - group_minimum;
    }
  }
}

// Three bits, the third in a mask of one bit a number: 16 groups of 16, with scales of six bits.
void unpack_q3_k(Bytes block, float* out) {
  const Bytes third = block;
  const Bytes scales = block + 96;
  const float scale = half(block + 108);
  for (int group = 0; group < 16; ++group) {
    const int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
    const int high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
    const float group_scale = scale * static_cast<float>((low | high << 4) - 32);
    const int at = group % 2 * 16;
    const Bytes pairs = block + 32 + group / 8 * 32 + at;
    const int shift = group % 8 / 2 * 2;
    for (int j = 0; j < 16; ++j) {
      const int value = (pairs[j] >> shift & 3) - ((third[at + j] >> (group / 2) & 1) != 0 ? 0 : 4);
      out[group * 16 + j] = group_scale * static_cast<float>(value);
    }
  }
}

struct GroupScale {
  int scale = 0;
  int minimum = 0;
};

// The scale and minimum, of six bits each, of one of eight groups, packed into 12 bytes.
GroupScale six_bit_scale(Bytes packed, int group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | packed[group - 4] >> 6 << 4,
          packed[group + 4] >> 4 | packed[group] >> 6 << 4};
}

// Four bits, or five with `fifth` (a bit a group in each of 32 bytes): 8 groups of 32. 32 bytes
// hold two groups, the first in their low halves.
void unpack_four_bits(Bytes block, Bytes fifth, Bytes halves, float* out) {
  const float scale = half(block);
  const float minimum = half(block + 2);
  for (int group = 0; group < 8; ++group) {
    const GroupScale packed = six_bit_scale(block + 4, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_minimum = minimum * static_cast<float>(packed.minimum);
    for (int j = 0; j < 32; ++j) {
      int value = halves[group / 2 * 32 + j] >> (group % 2 * 4) & 15;
      if (fifth != nullptr) value += (fifth[j] >> group & 1) * 16;
      out[group * 32 + j] = group_scale * static_cast<float>(value) - group_minimum;
    }
  }
}

void unpack_q4_k(Bytes block, float* out) { unpack_four_bits(block, nullptr, block + 16, out); }

void unpack_q5_k(Bytes block, float* out) { unpack_four_bits(block, block + 16, block + 48, out); }

// Six bits: 16 groups of 16. Each half of the block has 64 bytes of low halves and 32 of pairs.
void unpack_q6_k(Bytes block, float* out) {
  const float scale = half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int side = i / 128;
    const int quarter = i % 128 / 32;  // which 32 of its side
    const int j = i % 32;
    const int low = block[side * 64 + quarter % 2 * 32 + j] >> (quarter / 2 * 4) & 15;
    const int high = block[128 + side * 32 + j] >> (quarter * 2) & 3;
    const auto group_scale = static_cast<std::int8_t>(block[192 + i / 16]);
    out[i] = scale * static_cast<float>(group_scale) * static_cast<float>((low | high << 4) - 32);
  }
}

using Unpack = void (*)(Bytes block, float* out);

Unpack unpack_of(BlockType type) {
  switch (type) {
    case BlockType::f32: return unpack_f32;
    case BlockType::f16: return unpack_f16;
    case BlockType::bf16: return unpack_bf16;
    case BlockType::f64: return unpack_f64;
    case BlockType::q4_0: return unpack_q4_0;
    case BlockType::q4_1: return unpack_q4_1;
    case BlockType::q5_0: return unpack_q5_0;
    case BlockType::q5_1: return unpack_q5_1;
    case BlockType::q8_0: return unpack_q8_0;
    case BlockType::q2_k: return unpack_q2_k;
    case BlockType::q3_k: return unpack_q3_k;
    case BlockType::q4_k: return unpack_q4_k;
    case BlockType::q5_k: return unpack_q5_k;
    case BlockType::q6_k: return unpack_q6_k;
    case BlockType::i8:
    case BlockType::i16:
    case BlockType::i32:
    case BlockType::i64: break;
  }
  fail(ErrorCode::unsupported, "{} holds integers, not weights", block_layout(type).name);
}

}  // namespace

BlockLayout block_layout(BlockType type) {
  for (const auto& [known, layout] : layouts) {
    if (known == type) return layout;
  }
  check(false, "every type of a block has a layout");
  return {};
}

bool holds_weights(BlockType type) {
  return type != BlockType::i8 && type != BlockType::i16 && type != BlockType::i32 &&
         type != BlockType::i64;
}

std::optional<BlockType> find_block_type(std::uint32_t number) {
  for (const auto& [known, layout] : layouts) {
    if (static_cast<std::uint32_t>(known) == number) return known;
  }
  return std::nullopt;
}

std::string_view unread_block_type(std::uint32_t number) {
  for (const auto& [known, name] : unread_types) {
    if (known == number) return name;
  }
  return {};
}

void unpack_blocks(BlockType type, std::span<const std::byte> blocks, std::span<float> out) {
  const BlockLayout layout = block_layout(type);
  const Unpack unpack = unpack_of(type);
  const auto numbers = static_cast<std::int64_t>(out.size());
  const std::int64_t count = numbers / layout.values;
  require(count * layout.values == numbers &&
              count * layout.bytes == static_cast<std::int64_t>(blocks.size()),
          ErrorCode::invalid_argument,
          "{} bytes for {} numbers; a block of {} holds {} numbers in {} bytes", blocks.size(),
          numbers, layout.name, layout.values, layout.bytes);
  const auto* const bytes = reinterpret_cast<Bytes>(blocks.data());
  for (std::int64_t block = 0; block < count; ++block) {
    unpack(bytes + block * layout.bytes, out.data() + block * layout.values);
  }
}

}  // namespace heed
