// Weights in GGUF's blocks: the values that the layouts define, to the bit, and their products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/expect_error.h"
#include "checkpoint/weight_blocks.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

struct BlockKind {
  WeightFormat format;
  BlockType type;
  std::size_t integers, integers_end;  // bytes of a block
  std::vector<std::size_t> factors;    // numbers in f16
};

std::vector<BlockKind> block_kinds() {
  return {{WeightFormat::q8_0, BlockType::q8_0, 2, 34, {0}},
          {WeightFormat::q4_0, BlockType::q4_0, 2, 18, {0}},
          {WeightFormat::q4_1, BlockType::q4_1, 4, 20, {0, 2}},
          {WeightFormat::q5_0, BlockType::q5_0, 2, 22, {0}},
          {WeightFormat::q5_1, BlockType::q5_1, 4, 24, {0, 2}},
          {WeightFormat::q2_k, BlockType::q2_k, 16, 80, {80, 82}},
          {WeightFormat::q3_k, BlockType::q3_k, 0, 96, {108}},
          {WeightFormat::q4_k, BlockType::q4_k, 16, 144, {0, 2}},
          {WeightFormat::q5_k, BlockType::q5_k, 16, 176, {0, 2}},
          {WeightFormat::q6_k, BlockType::q6_k, 0, 192, {208}}};
}

// Random blocks of a matrix, and the weights that they unpack to.
struct BlockedWeights {
  BlockedWeights(BlockKind of, std::int64_t outputs, std::int64_t inputs, std::uint64_t stream = 1)
      : kind(std::move(of)), shape{outputs, inputs} {
    const BlockSize size = block_size(kind.format);
    bytes.resize(static_cast<std::size_t>(shape.size() / size.values * size.bytes));
    RandomStream random(50, stream);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    const auto block_bytes = static_cast<std::size_t>(size.bytes);
    for (std::size_t block = 0; block < bytes.size(); block += block_bytes) {
      for (const std::size_t factor : kind.factors) {
        // of any sign, 2^-8 to 2^-3; one of thirty subnormal or zero
        const auto exponent = random.below(30) == 0 ? 0 : 7 + random.below(5);
        const auto bits =
            static_cast<std::uint16_t>((random.below(65536) & 0x83FFU) | exponent << 10);
        std::memcpy(bytes.data() + block + factor, &bits, sizeof(bits));
      }
    }
    weights = unpacked(bytes);
    std::vector<std::byte> none = bytes;
    for (std::size_t block = 0; block < bytes.size(); block += block_bytes) {
      std::fill(none.begin() + static_cast<std::ptrdiff_t>(block + kind.integers),
                none.begin() + static_cast<std::ptrdiff_t>(block + kind.integers_end),
                std::byte{0});
    }
    least = unpacked(none);
  }

  std::vector<float> unpacked(const std::vector<std::byte>& blocks) const {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    unpack_blocks(kind.type, blocks, values);
    return values;
  }

  BlockMatrix matrix() const { return {.blocks = bytes, .shape = shape, .format = kind.format}; }

  // Σ weights · x in f64, and the sum of the magnitudes of the terms that kernels may add in f32:
  // integers from 0 on, times scales, and minima times the sum of a group's inputs.
  struct Sum {
    double value = 0.0;
    double magnitude = 0.0;
  };
  Sum product(const float* x, std::int64_t output) const {
    Sum sum;
    for (std::int64_t i = 0; i < shape[1]; ++i) {
      const auto at = static_cast<std::size_t>(output * shape[1] + i);
      const double weight = static_cast<double>(weights[at]), input = static_cast<double>(x[i]);
      const double base = static_cast<double>(least[at]);
      sum.value += weight * input;
      sum.magnitude += (std::abs(weight - base) + std::abs(base)) * std::abs(input);
    }
    return sum;
  }

  BlockKind kind;
  Shape shape;
  std::vector<std::byte> bytes;
  std::vector<float> weights;
  std::vector<float> least;  // those of integers that are all zero
};

// Integers, of which every group has one of 127: they are quantised exactly, with a scale of 1.
Tensor<float> integer_rows(std::int64_t rows, std::int64_t inputs) {
  Tensor<float> x(Shape{rows, inputs});
  RandomStream random(51, 1);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(random.below(255)) - 127.0F;
    if (i % PreparedWeight::group == 5)
      x[i] = i / PreparedWeight::group % 2 == 0 ? 127.0F : -127.0F;
  }
  return x;
}

Tensor<float> block_product(const Tensor<float>& x, const PreparedWeight& weight,
                            std::int64_t positions) {
  Tensor<float> out(Shape{x.shape()[0], weight.outputs()});
  prepared_linear_forward(x, weight, {}, out, positions);
  return out;
}

constexpr std::int64_t block_inputs = 768;

TEST(BlockWeights, AreThoseOfTheLayoutToTheBit) {
  for (const BlockKind& kind : block_kinds()) {
    const BlockedWeights blocked(kind, 70, block_inputs);
    SCOPED_TRACE(weight_format_name(kind.format));
    on_every_instruction_set([&] {
      const PreparedWeight prepared(blocked.matrix());
      const Tensor<float> restored = prepared.restored();
      ASSERT_EQ(std::memcmp(restored.data(), blocked.weights.data(), restored.span().size_bytes()),
                0);
      for (const std::int64_t output : {0, 33, 69}) {
        const std::vector<float> row = prepared.restored_row(output);
        ASSERT_EQ(std::memcmp(row.data(), blocked.weights.data() + output * block_inputs,
                              row.size() * sizeof(float)),
                  0)
            << output;
      }
    });
  }
}

// Groups are summed exactly in integers. In f32 each of at most inputs / 16 of them rounds four
// times: the product and the sum with its scale, and those with its minimum, where multiply-adds
// are not fused. Products in f32 round each input's term twice, those in bf16 each weight by 2^-8.
TEST(BlockWeights, ProductsAreThoseOfTheUnpackedWeights) {
  constexpr std::int64_t rows = 71, outputs = 40;
  const Tensor<float> x = integer_rows(rows, block_inputs);
  for (const BlockKind& kind : block_kinds()) {
    const BlockedWeights blocked(kind, outputs, block_inputs);
    const PreparedWeight prepared(blocked.matrix());
    SCOPED_TRACE(weight_format_name(kind.format));
    on_every_instruction_set([&] {
      for (const std::int64_t positions : {decoding_step, std::int64_t{1}, rows}) {
        const bool in_integers =
            positions != rows || (!tests_device() && multiplies_long_rows_in_integers(kind.format));
        const bool in_bf16 = tests_device() || has_bf16_products();
        const double in_f32 = in_bf16 ? 0x1p-8 : 2 * block_inputs * unit_roundoff;
        const double bound = in_integers ? 4 * (block_inputs / 16 + 1) * unit_roundoff : in_f32;
        const Tensor<float> out = block_product(x, prepared, positions);
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t o = 0; o < outputs; ++o) {
            const BlockedWeights::Sum sum = blocked.product(x.data() + row * block_inputs, o);
            ASSERT_NEAR(static_cast<double>(out.view()(row, o)), sum.value, bound * sum.magnitude)
                << "row " << row << " output " << o << " positions " << positions;
          }
        }
      }
    });
  }
}

TEST(BlockWeights, RowsHaveTheSameBitsBesideOthersAndOnOtherSets) {
  constexpr std::int64_t rows = 13, outputs = 160;  // more panels than are read in parallel
  Tensor<float> x(Shape{rows, block_inputs});
  RandomStream random(52, 1);
  for (float& value : x.span()) value = static_cast<float>(random.normal());
  for (const BlockKind& kind : block_kinds()) {
    const PreparedWeight prepared(BlockedWeights(kind, outputs, block_inputs).matrix());
    std::vector<float> first;  // of all sets with fused multiply-adds, the same bits
    on_every_instruction_set([&] {
      const Tensor<float> together = block_product(x, prepared, 1);
      if (current_instruction_set().starts_with("AVX")) {
        if (first.empty()) first.assign(together.span().begin(), together.span().end());
        EXPECT_EQ(std::memcmp(together.data(), first.data(), together.span().size_bytes()), 0);
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        Tensor<float> one(Shape{1, block_inputs});
        std::copy_n(x.data() + row * block_inputs, block_inputs, one.data());
        const Tensor<float> alone = block_product(one, prepared, 1);
        ASSERT_EQ(
            std::memcmp(alone.data(), together.data() + row * outputs, alone.span().size_bytes()),
            0)
            << weight_format_name(kind.format) << " row " << row;
      }
    });
  }
}

TEST(BlockWeights, TakeTheMemoryOfTheirBlocks) {
  for (const BlockKind& kind : block_kinds()) {
    const BlockedWeights blocked(kind, 96, block_inputs);
    const PreparedWeight prepared(blocked.matrix());
    const auto bytes = static_cast<double>(blocked.bytes.size());
    // scales and minima of six bits take eight
    EXPECT_LE(static_cast<double>(prepared.bytes()), 1.04 * bytes);
    EXPECT_GE(static_cast<double>(prepared.bytes()), bytes);
    EXPECT_EQ(bytes_per_weight(kind.format) * static_cast<double>(blocked.shape.size()),
              static_cast<double>(prepared.bytes()));
  }
}

BlockKind kind_of(WeightFormat format) {
  const std::vector<BlockKind> kinds = block_kinds();
  return *std::ranges::find(kinds, format, &BlockKind::format);
}

// As queries, keys and values of one layer are, in files of mixed types.
TEST(BlockWeights, PartsKeepTheirFormats) {
  const BlockKind four = kind_of(WeightFormat::q4_k), six = kind_of(WeightFormat::q6_k);
  const BlockedWeights parts[] = {{four, 64, block_inputs, 1},
                                  {six, 32, block_inputs, 2},
                                  {six, 64, block_inputs, 3},
                                  {four, 24, block_inputs, 4}};
  const BlockMatrix matrices[] = {parts[0].matrix(), parts[1].matrix(), parts[2].matrix(),
                                  parts[3].matrix()};
  const PreparedWeight together(matrices);
  EXPECT_EQ(together.outputs(), 184);
  EXPECT_EQ(together.parts().size(), 3);
  constexpr std::int64_t rows = 9;
  const Tensor<float> x = integer_rows(rows, block_inputs);
  on_every_instruction_set([&] {
    const Tensor<float> restored = together.restored();
    for (const std::int64_t positions : {std::int64_t{1}, rows * 100}) {
      // in f32 where one of the formats is
      const bool same_bits = positions == 1 || multiplies_long_rows_in_integers(six.format) ||
                             !multiplies_long_rows_in_integers(four.format);
      const Tensor<float> out = block_product(x, together, positions);
      std::int64_t first = 0;
      for (const BlockedWeights& part : parts) {
        const PreparedWeight alone(part.matrix());
        const Tensor<float> own = block_product(x, alone, positions);
        const std::int64_t outputs = part.shape[0];
        EXPECT_EQ(std::memcmp(restored.data() + first * block_inputs, part.weights.data(),
                              part.weights.size() * sizeof(float)),
                  0);
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t o = 0; o < outputs; ++o) {
            const float actual = out.view()(row, first + o), expected = own.view()(row, o);
            if (same_bits) {
              ASSERT_EQ(actual, expected) << "row " << row << " output " << first + o;
            } else {
              const double magnitude = part.product(x.data() + row * block_inputs, o).magnitude;
              ASSERT_NEAR(actual, expected, 3 * block_inputs * unit_roundoff * magnitude);
            }
          }
        }
        first += outputs;
      }
    }
  });
}

TEST(BlockWeights, PartsOfOneFormatNeedNoWholePanels) {
  const BlockKind kind = kind_of(WeightFormat::q4_0);
  const BlockedWeights whole(kind, 50, 64);
  const auto row_bytes = static_cast<std::ptrdiff_t>(whole.bytes.size() / 50);
  const std::span<const std::byte> all = whole.bytes;
  const BlockMatrix parts[] = {{.blocks = all.first(static_cast<std::size_t>(7 * row_bytes)),
                                .shape = {7, 64},
                                .format = kind.format},
                               {.blocks = all.subspan(static_cast<std::size_t>(7 * row_bytes)),
                                .shape = {43, 64},
                                .format = kind.format}};
  const PreparedWeight prepared(parts);
  const Tensor<float> restored = prepared.restored();
  EXPECT_EQ(prepared.parts().size(), 1);
  EXPECT_EQ(std::memcmp(restored.data(), whole.weights.data(), restored.span().size_bytes()), 0);
}

TEST(BlockWeights, RefuseWhatIsNotBlocks) {
  const BlockedWeights blocked(kind_of(WeightFormat::q4_k), 40, 256);
  const auto refuse = [&](BlockMatrix matrix, const char* message) {
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { PreparedWeight weight(matrix); }, message);
  };
  BlockMatrix matrix = blocked.matrix();
  matrix.blocks = matrix.blocks.first(matrix.blocks.size() - 1);
  refuse(matrix, "5759 bytes for weights (40, 256) in q4_k");
  matrix = blocked.matrix();
  matrix.shape = {80, 128};
  refuse(matrix, "rows of 128 numbers in q4_k: expected a multiple of 256");
  matrix.format = WeightFormat::int8;
  refuse(matrix, "weights in int8 are not blocks");
  BlockedWeights infinite = blocked;
  infinite.bytes[3 * 144 + 3] = std::byte{0x7C};  // the fourth block's factor of minima
  refuse(infinite.matrix(), "a block of q4_k has a scale that is not finite");
  const BlockedWeights other(kind_of(WeightFormat::q6_k), 32, 256);
  const BlockMatrix parts[] = {blocked.matrix(), other.matrix()};
  testing::expect_error(
      ErrorCode::unsupported, [&] { PreparedWeight weight{std::span<const BlockMatrix>(parts)}; },
      "outputs change from q4_k to q6_k after 40: expected a multiple of 32");
  const Tensor<float> weight(Shape{32, 256});
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { PreparedWeight rounded(weight, WeightFormat::q4_k); },
      "weights are not quantised to q4_k");
}

}  // namespace
}  // namespace heed::kernels
