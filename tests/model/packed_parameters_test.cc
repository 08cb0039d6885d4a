// Weights kept in the order of products: the same results, to the bit.
#include <gtest/gtest.h>

#include <vector>

#include "generate/random_transformer.h"
#include "model/comparison.h"
#include "model/transformer.h"

namespace heed {
namespace {

using testing::same_bits;

constexpr std::int64_t packed_positions = 64;  // more than are read without a matrix product

StackSpecification config_of(bool tied) {
  StackSpecification config = make_gpt_config(2, 4, 36, packed_positions, 70);
  config.tied_unembedding = tied;
  return config;
}

Tensor<float> packed_logits(const Transformer& transformer) {
  std::vector<std::int32_t> tokens;
  for (std::int32_t t = 0; t < packed_positions; ++t) tokens.push_back(t * 37 % 70);
  return testing::full_logits(transformer, tokens);
}

TEST(PackedParameters, ChangeNoBit) {
  for (const bool tied : {true, false}) {
    Transformer transformer({.stacks = {config_of(tied)}});
    transformer.parameters().initialize(3);
    const Tensor<float> plain = packed_logits(transformer);
    transformer.parameters().pack();
    EXPECT_TRUE(same_bits(packed_logits(transformer), plain));
  }
}

TEST(PackedParameters, GiveWayToQuantisedFormats) {
  Transformer transformer({.stacks = {config_of(true)}}), quantised({.stacks = {config_of(true)}});
  transformer.parameters().initialize(3);
  quantised.parameters().initialize(3);
  quantised.parameters().prepare(kernels::WeightFormat::int8);
  transformer.parameters().pack();
  transformer.parameters().prepare(kernels::WeightFormat::int8);
  transformer.parameters().pack();  // does nothing now
  EXPECT_TRUE(same_bits(packed_logits(transformer), packed_logits(quantised)));
}

TEST(PackedParameters, TakeOneToOneAndAHalfTimesTheWeights) {
  const std::int64_t bytes =
      Parameters::packed_bytes(make_gpt_config(2, 4, 256, packed_positions, 512));
  const std::int64_t weights = 512 * 256 + 2 * (4 * 256 * 256 + 2 * 256 * 1024);
  EXPECT_GE(bytes, weights * 4);
  EXPECT_LE(bytes, weights * 6);
}

// What threads fetch while they wait is what is read next.
TEST(PreparedParameters, FollowEachOtherInTheOrderOfATokensProducts) {
  Transformer transformer({.stacks = {config_of(true)}});
  Parameters& parameters = transformer.parameters();
  parameters.initialize(3);
  parameters.prepare(kernels::WeightFormat::bf16);
  std::vector<const kernels::PreparedWeight*> read;
  for (std::int64_t layer = 0; layer < transformer.specification().layers; ++layer) {
    const BlockParameters& block = parameters.block(layer);
    for (const LinearWeights* linear :
         {&block.query_key_value, &block.projection, &block.up, &block.down}) {
      read.push_back(linear->prepared);
    }
  }
  read.push_back(parameters.unembedding().prepared);
  for (std::size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i]->next(), read[(i + 1) % read.size()]) << "weight " << i;
  }
}

}  // namespace
}  // namespace heed
