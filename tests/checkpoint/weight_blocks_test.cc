// Blocks of weights unpack to the numbers that their published layouts define, worked out by hand.
#include "checkpoint/weight_blocks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "base/expect_error.h"

namespace heed {
namespace {

using Block = std::vector<std::uint8_t>;

constexpr std::array<std::uint8_t, 2> half_of_2 = {0x00, 0x40};
constexpr std::array<std::uint8_t, 2> half_of_quarter = {0x00, 0x34};

void put_half(Block& block, std::size_t at, const std::array<std::uint8_t, 2>& bytes) {
  std::memcpy(block.data() + at, bytes.data(), 2);
}

std::vector<float> unpack(BlockType type, const Block& block) {
  std::vector<float> out(static_cast<std::size_t>(block_layout(type).values));
  EXPECT_EQ(static_cast<std::int64_t>(block.size()), block_layout(type).bytes);
  unpack_blocks(type, std::as_bytes(std::span(block)), out);
  return out;
}

TEST(WeightBlocks, FourBitsAreHalvesOfBytes) {
  Block block(18);
  put_half(block, 0, half_of_2);
  block[2] = 0xF0;   // numbers 0 and 16: 0 and 15
  block[17] = 0x29;  // 15 and 31: 9 and 2
  const std::vector<float> out = unpack(BlockType::q4_0, block);
  EXPECT_EQ(out[0], -16.0F);
  EXPECT_EQ(out[16], 14.0F);
  EXPECT_EQ(out[15], 2.0F);
  EXPECT_EQ(out[31], -12.0F);
}

TEST(WeightBlocks, FourBitsAboveAMinimum) {
  Block block(20);
  put_half(block, 0, half_of_2);
  put_half(block, 2, half_of_quarter);
  block[4] = 0xF1;
  const std::vector<float> out = unpack(BlockType::q4_1, block);
  EXPECT_EQ(out[0], 2.25F);
  EXPECT_EQ(out[16], 30.25F);
  EXPECT_EQ(out[1], 0.25F);
}

TEST(WeightBlocks, AFifthBitOfEachNumberLiesApart) {
  Block block(22);
  put_half(block, 0, half_of_2);
  block[2] = 0x01;   // fifth bit of number 0
  block[5] = 0x80;   // of number 31
  block[6] = 0x03;   // number 0: 3
  block[21] = 0x40;  // number 31: 4
  const std::vector<float> out = unpack(BlockType::q5_0, block);
  EXPECT_EQ(out[0], 2.0F * (19 - 16));
  EXPECT_EQ(out[31], 2.0F * (20 - 16));
  EXPECT_EQ(out[1], 2.0F * -16);

  Block above(24);
  put_half(above, 0, half_of_2);
  put_half(above, 2, half_of_quarter);
  above[6] = 0x01;  // fifth bit of number 16
  above[8] = 0x50;  // number 16: 5
  EXPECT_EQ(unpack(BlockType::q5_1, above)[16], 2.0F * 21 + 0.25F);
}

TEST(WeightBlocks, EightBitsHaveASign) {
  Block block(34);
  put_half(block, 0, half_of_quarter);
  block[2] = 0x80;
  block[33] = 0x7F;
  const std::vector<float> out = unpack(BlockType::q8_0, block);
  EXPECT_EQ(out[0], -32.0F);
  EXPECT_EQ(out[31], 31.75F);
}

TEST(WeightBlocks, TwoBitsOfSixteenGroups) {
  Block block(84);
  block[9] = 0x53;  // group 9: scale 3, minimum 5
  put_half(block, 80, half_of_2);
  put_half(block, 82, half_of_quarter);
  block[16 + 32 + 16] = 0x02;  // the first number of group 9: 2, of group 11: 0
  const std::vector<float> out = unpack(BlockType::q2_k, block);
  EXPECT_EQ(out[9 * 16], 2.0F * 3 * 2 - 0.25F * 5);
  EXPECT_EQ(out[9 * 16 + 1], -0.25F * 5);
  EXPECT_EQ(out[8 * 16], 0.0F);
}

TEST(WeightBlocks, ThreeBitsOfSixteenGroups) {
  Block block(110);
  put_half(block, 108, half_of_2);
  block[96 + 2] = 0x70;       // group 10: the low bits of its scale are 7
  block[96 + 8 + 2] = 0x30;   // and its high bits 3: 55 - 32
  block[2] = 0x20;            // third bit of the third number of group 10
  block[32 + 32 + 2] = 0x04;  // its low bits: 1
  const std::vector<float> out = unpack(BlockType::q3_k, block);
  EXPECT_EQ(out[10 * 16 + 2], 2.0F * 23 * 1);
  EXPECT_EQ(out[10 * 16 + 3], 2.0F * 23 * -4);
}

TEST(WeightBlocks, FourBitsOfEightGroups) {
  Block block(144);
  put_half(block, 0, half_of_2);
  put_half(block, 2, half_of_quarter);
  block[4 + 1] = 0x80 | 9;     // group 1: scale 9; its high bits are those of group 5's scale
  block[4 + 5] = 0x40 | 6;     // group 1: minimum 6; group 5's minimum
  block[4 + 9] = 0x3C;         // group 5: scale 12 + 2 · 16, minimum 3 + 1 · 16
  block[16] = 0x70;            // the first number of group 1: 7
  block[16 + 64 + 31] = 0xB0;  // the last of group 5: 11
  const std::vector<float> out = unpack(BlockType::q4_k, block);
  EXPECT_EQ(out[32], 2.0F * 9 * 7 - 0.25F * 6);
  EXPECT_EQ(out[5 * 32 + 31], 2.0F * 44 * 11 - 0.25F * 19);
}

TEST(WeightBlocks, FiveBitsOfEightGroups) {
  Block block(176);
  put_half(block, 0, half_of_2);
  block[4 + 1] = 9;
  block[16] = 0x02;  // fifth bit of the first number of group 1
  block[48] = 0x70;  // its other bits: 7
  EXPECT_EQ(unpack(BlockType::q5_k, block)[32], 2.0F * 9 * 23);
}

TEST(WeightBlocks, SixBitsOfSixteenGroups) {
  Block block(210);
  put_half(block, 208, half_of_2);
  block[192 + 13] = 0xFD;  // group 13: scale -3
  // Number 209 is the 18th of the third 32 of the second half: high bits 4 and 5 of byte 17, and a
  // high half.
  block[64 + 17] = 0x50;
  block[128 + 32 + 17] = 0x20;
  EXPECT_EQ(unpack(BlockType::q6_k, block)[209], 2.0F * -3 * (37 - 32));
}

TEST(WeightBlocks, SingleNumbersAreTheirOwnBlocks) {
  const std::array<std::uint16_t, 2> halves = {0x3C00, 0xC000};
  std::array<float, 2> out{};
  unpack_blocks(BlockType::f16, std::as_bytes(std::span(halves)), out);
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_EQ(out[1], -2.0F);
  unpack_blocks(BlockType::bf16, std::as_bytes(std::span(halves)), out);
  EXPECT_EQ(out[0], 0.0078125F);
  const std::array<double, 2> doubles = {0.5, -3};
  unpack_blocks(BlockType::f64, std::as_bytes(std::span(doubles)), out);
  EXPECT_EQ(out[1], -3.0F);
}

TEST(WeightBlocks, BytesOfNoWholeBlocksAreRefused) {
  const std::vector<std::byte> bytes(34);
  std::vector<float> out(31);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { unpack_blocks(BlockType::q8_0, bytes, out); }, "34 bytes",
      "31 numbers");
  testing::expect_error(
      ErrorCode::unsupported, [&] { unpack_blocks(BlockType::i32, bytes, out); }, "I32");
}

TEST(WeightBlocks, TypesHaveTheFormatsNumbers) {
  EXPECT_EQ(find_block_type(12), BlockType::q4_k);
  EXPECT_FALSE(find_block_type(16));
  EXPECT_EQ(unread_block_type(16), "IQ2_XXS");
  EXPECT_EQ(unread_block_type(12), "");
  EXPECT_EQ(unread_block_type(4096), "");
}

}  // namespace
}  // namespace heed
