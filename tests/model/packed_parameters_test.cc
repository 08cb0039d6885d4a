// Weights kept in the order of products: the same results, to the bit.
#include <gtest/gtest.h>

#include <cstring>

#include "model/gpt.h"

namespace heed {
namespace {

constexpr std::int64_t positions = 64;  // more than are read without a matrix product

GptConfig config_of(bool tied) {
  GptConfig config = make_gpt_config(2, 4, 36, positions, 70);
  config.tied_unembedding = tied;
  return config;
}

Tensor<float> logits_of(const Gpt& gpt) {
  Tensor<std::int32_t> tokens(Shape{1, positions});
  for (std::int64_t t = 0; t < positions; ++t) tokens[t] = static_cast<std::int32_t>(t * 37 % 70);
  const GptActivations activations(gpt.config(), 1, positions, Keep::one_block);
  gpt.forward(tokens, {.positions = positions}, activations);
  Tensor<float> logits(Shape{positions, gpt.config().vocabulary_size});
  gpt.project(activations.final_norm(), logits);
  return logits;
}

bool same_bits(const Tensor<float>& a, const Tensor<float>& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
}

TEST(PackedParameters, ChangeNoBit) {
  for (const bool tied : {true, false}) {
    Gpt gpt(config_of(tied));
    gpt.parameters().initialize(3);
    const Tensor<float> plain = logits_of(gpt);
    gpt.parameters().pack();
    EXPECT_TRUE(same_bits(logits_of(gpt), plain));
  }
}

TEST(PackedParameters, GiveWayToQuantisedFormats) {
  Gpt gpt(config_of(true)), quantised(config_of(true));
  gpt.parameters().initialize(3);
  quantised.parameters().initialize(3);
  quantised.parameters().prepare(kernels::WeightFormat::int8);
  gpt.parameters().pack();
  gpt.parameters().prepare(kernels::WeightFormat::int8);
  gpt.parameters().pack();  // does nothing now
  EXPECT_TRUE(same_bits(logits_of(gpt), logits_of(quantised)));
}

TEST(PackedParameters, TakeOneToOneAndAHalfTimesTheWeights) {
  const std::int64_t bytes =
      GptParameters::packed_bytes(make_gpt_config(2, 4, 256, positions, 512));
  const std::int64_t weights = 512 * 256 + 2 * (4 * 256 * 256 + 2 * 256 * 1024);
  EXPECT_GE(bytes, weights * 4);
  EXPECT_LE(bytes, weights * 6);
}

}  // namespace
}  // namespace heed
