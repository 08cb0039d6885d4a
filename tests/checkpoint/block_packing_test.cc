// Numbers rounded to blocks: each lies as near to what it was as its block allows.
#include "checkpoint/block_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/expect_error.h"
#include "tensor/dtype.h"

namespace heed {
namespace {

using testing::expect_error;

std::vector<float> some_numbers(std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // Blocks of different sizes, some of one sign alone.
    const double angle = static_cast<double>(i) * 0.7391 + static_cast<double>(i / 32 % 5);
    const double size = 0.01 + static_cast<double>(i / 32 % 7);
    const double shift = i / 256 % 3 == 1 ? 1.5 : 0;
    numbers[i] = static_cast<float>(size * (std::sin(angle) + shift));
  }
  return numbers;
}

std::vector<float> packed_and_unpacked(BlockType type, std::span<const float> numbers) {
  const BlockLayout layout = block_layout(type);
  std::vector<std::byte> blocks(numbers.size() / static_cast<std::size_t>(layout.values) *
                                static_cast<std::size_t>(layout.bytes));
  pack_blocks(type, numbers, blocks);
  std::vector<float> read(numbers.size());
  unpack_blocks(type, blocks, read);
  return read;
}

struct Packing {
  BlockType type;
  // Half of the distance of neighbouring values, by the largest magnitude (or, with a minimum, the
  // range from 0) of the numbers that share them; of K-blocks with what the rounding of a scale and
  // a minimum to six bits adds: a sixty-third of the block's largest, half of it each.
  double error;
};

TEST(BlockPacking, IsWithinHalfAStep) {
  constexpr std::int64_t shared = 256;  // numbers of all blocks whose scales depend on each other
  const std::vector<float> numbers = some_numbers(shared * 12);
  for (const auto& [type, error] :
       {Packing{BlockType::f32, 0}, Packing{BlockType::f16, 0x1p-11},
        Packing{BlockType::bf16, 0x1p-8}, Packing{BlockType::q8_0, 0.5 / 127 + 0x1p-11},
        Packing{BlockType::q4_0, 1.0 / 8 + 0x1p-10}, Packing{BlockType::q5_0, 1.0 / 16 + 0x1p-10},
        Packing{BlockType::q5_1, 1.0 / 31 + 0x1p-9}, Packing{BlockType::q4_k, 1.0 / 15 + 2.0 / 63},
        Packing{BlockType::q5_k, 1.0 / 31 + 2.0 / 63},
        Packing{BlockType::q6_k, 1.0 / 32 + 1.0 / 128}}) {
    SCOPED_TRACE(block_layout(type).name);
    EXPECT_TRUE(can_pack(type));
    const std::vector<float> read = packed_and_unpacked(type, numbers);
    const bool is_k = block_layout(type).values == 256;
    const std::int64_t group = is_k ? 256 : 32;
    for (std::int64_t begin = 0; begin < std::ssize(numbers); begin += group) {
      double largest = 0;
      for (std::int64_t i = begin; i < begin + group; ++i) {
        largest =
            std::max(largest, std::abs(static_cast<double>(numbers[static_cast<std::size_t>(i)])));
      }
      for (std::int64_t i = begin; i < begin + group; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_LE(std::abs(static_cast<double>(read[at]) - numbers[at]), error * largest) << i;
      }
    }
  }
}

// What blocks can say exactly, they keep, to the bit.
TEST(BlockPacking, KeepsWhatItWrote) {
  const std::vector<float> numbers = some_numbers(512);
  for (const BlockType type :
       {BlockType::f16, BlockType::bf16, BlockType::q8_0, BlockType::q4_0, BlockType::q5_0}) {
    const std::vector<float> once = packed_and_unpacked(type, numbers);
    EXPECT_EQ(packed_and_unpacked(type, once), once) << block_layout(type).name;
  }
  const std::vector<float> zeros(512);
  for (const BlockType type : {BlockType::q8_0, BlockType::q4_0, BlockType::q5_0, BlockType::q5_1,
                               BlockType::q4_k, BlockType::q5_k, BlockType::q6_k}) {
    EXPECT_EQ(packed_and_unpacked(type, zeros), zeros) << block_layout(type).name;
  }
}

TEST(BlockPacking, RefusesWhatHasNoPlace) {
  std::vector<float> numbers(256);
  std::vector<std::byte> blocks(210);
  numbers[3] = std::numeric_limits<float>::quiet_NaN();
  expect_error(
      ErrorCode::unsupported, [&] { pack_blocks(BlockType::q6_k, numbers, blocks); }, "nan",
      "Q6_K");
  numbers[3] = 1e9F;
  expect_error(
      ErrorCode::unsupported, [&] { pack_blocks(BlockType::q6_k, numbers, blocks); }, "65504");
  expect_error(
      ErrorCode::invalid_argument, [&] { pack_blocks(BlockType::q4_k, numbers, blocks); },
      "210 bytes for 256 numbers");
  expect_error(
      ErrorCode::unsupported, [&] { pack_blocks(BlockType::q2_k, numbers, blocks); },
      "does not write blocks of Q2_K");
}

TEST(HalfPrecision, IsTheNearestOfAllHalves) {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(f32_to_f16(value), bits);
    ASSERT_EQ(f32_to_f16(-value), bits | 0x8000U);
    if (bits + 1 == 0x7C00) break;
    const float next = f16_to_f32(static_cast<std::uint16_t>(bits + 1));
    const float middle = value + (next - value) / 2;  // exact in f32
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(f32_to_f16(middle), even);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), bits + 1);
  }
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
}

}  // namespace
}  // namespace heed
