#include "model/parameter_count.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "model/parameters.h"
#include "model/presets.h"
#include "model/transformer.h"

namespace heed {
namespace {

using testing::expect_error;

TEST(ParameterCount, IsThePublishedOne) {
  EXPECT_EQ(count_parameters(model_preset("gpt2").config).total, 124'439'808);
  EXPECT_EQ(count_parameters(model_preset("gpt2-medium").config).total, 354'823'168);
  EXPECT_EQ(count_parameters(model_preset("gpt2-large").config).total, 774'030'080);
  EXPECT_EQ(count_parameters(model_preset("gpt2-xl").config).total, 1'557'611'200);
  EXPECT_EQ(count_parameters(model_preset("gpt3").config).total, 174'604'259'328);
}

TEST(ParameterCount, TakesGpt3Apart) {
  const ParameterCount count = count_parameters(model_preset("gpt3").config);
  EXPECT_EQ(count.embedding, 617'558'016);
  EXPECT_EQ(count.per_head.query, 1'572'864);
  EXPECT_EQ(count.per_head.key, 1'572'864);
  EXPECT_EQ(count.per_head.value_down, 1'572'864);
  EXPECT_EQ(count.per_head.value_up, 1'572'864);
  EXPECT_EQ(count.per_head.total, 6'291'456);
  EXPECT_EQ(count.attention_block, 603'979'776);
  EXPECT_EQ(count.attention_total, 57'982'058'496);
  EXPECT_EQ(count.feed_forward_block, 1'207'959'552);
  EXPECT_EQ(count.feed_forward_total, 115'964'116'992);
  EXPECT_EQ(count.unembedding, 0);
}

TEST(ParameterCount, IsWhatTheArenaHolds) {
  std::vector<StackSpecification> configs;
  for (const ModelPreset& preset : model_presets()) configs.push_back(preset.config);
  StackSpecification unusual = make_gpt_config(2, 3, 24, 16, 37);
  unusual.block.attention.head_size = 10;
  unusual.block.feed_forward.width = 56;
  unusual.tied_unembedding = false;
  configs.push_back(unusual);
  set_biases(unusual, Biases::none);
  configs.push_back(unusual);
  for (const StackSpecification& config : configs) {
    const ArenaLayout layout = parameter_layout({.stacks = {config}});
    std::int64_t elements = 0;
    for (const auto& entry : layout.entries()) elements += entry.shape.size();
    EXPECT_EQ(count_parameters(config).total, elements);
  }
}

// The counts that the checkpoints of these models have.
TEST(ParameterCount, IsThatOfPublishedDecoders) {
  const std::pair<const char*, std::int64_t> published[] = {
      {"llama-3.2-1b", 1'235'814'400}, {"llama-3-8b", 8'030'261'248}, {"mistral-7b", 7'241'732'096},
      {"qwen2.5-0.5b", 494'032'768},   {"qwen3-0.6b", 596'049'920},   {"pythia-160m", 162'322'944}};
  for (const auto& [name, total] : published) {
    EXPECT_EQ(count_parameters(model_preset(name).config).total, total) << name;
  }
}

// T5's and BERT's are those of their checkpoints; the original's follows from the paper's sizes.
TEST(ParameterCount, IsThatOfPublishedEncodersAndEncoderDecoders) {
  const auto total = [](const char* name) {
    return count_parameters(find_architecture_preset(name)->architecture).total;
  };
  EXPECT_EQ(total("t5-small"), 60'506'624);
  EXPECT_EQ(total("t5-base"), 222'903'552);
  EXPECT_EQ(total("bert-base-uncased"), 109'514'298);
  EXPECT_EQ(total("transformer-base"),
            37'000LL * 512 +
                6 * (3 * 4 * (512 * 512 + 512) + 2 * (2 * 512 * 2048 + 2048 + 512) + 5 * 2 * 512));
  EXPECT_EQ(find_architecture_preset("t6"), nullptr);
}

TEST(ParameterCount, TakesStacksApart) {
  const Architecture& t5 = find_architecture_preset("t5-small")->architecture;
  const std::vector<StackCount> stacks = count_stacks(t5);
  ASSERT_EQ(stacks.size(), 2U);
  const std::int64_t attention = 6LL * 4 * 512 * 512, feed_forward = 6LL * 2 * 512 * 2048;
  EXPECT_EQ(stacks[0].attention, attention);
  EXPECT_EQ(stacks[0].cross_attention, 0);
  EXPECT_EQ(stacks[1].attention, attention);
  EXPECT_EQ(stacks[1].cross_attention, attention);
  EXPECT_EQ(stacks[1].feed_forward, feed_forward);
}

TEST(ParameterCount, CountsTwoStacks) {
  StackSpecification decoder = make_gpt_config(2, 4, 16, 10, 50);
  StackSpecification encoder = decoder;
  encoder.role = StackRole::encoder;
  encoder.has_unembedding = false;
  encoder.block.attention.mask.kind = MaskKind::full;
  decoder.block.cross_attention = decoder.block.attention;
  const Architecture both{{encoder, decoder}};
  const ParameterCount count = count_parameters(both);
  // 4·C² of attention once in a block of the encoder and twice in one of the decoder.
  EXPECT_EQ(count.attention_total, 2 * 4 * 16 * 16 * 3);
  EXPECT_EQ(count.feed_forward_total, 2 * 2 * 2 * 16 * 64);
  EXPECT_EQ(count.embedding, 50 * 16);  // shared
  // A stack that is counted alone has its own embedding, and the decoder its cross-attention.
  EXPECT_EQ(count_parameters(encoder).total + count_parameters(decoder).total,
            count.total + count.embedding);
  EXPECT_EQ(count_parameters(decoder).attention_total, 2 * 2 * 4 * 16 * 16);
  // Two norms in a block, three in the decoder's, and a last one: each of gain and bias.
  EXPECT_EQ(count.norms, (2 * 2 + 1 + 2 * 3 + 1) * 2 * 16);
  expect_error(
      ErrorCode::invalid_argument, [&] { Transformer transformer({.stacks = {decoder}}); },
      "cross-attention");
  expect_error(
      ErrorCode::invalid_argument, [&] { Architecture{{decoder}}.validate(); }, "cross-attention");
}

TEST(ModelCost, FollowsFromTheCounts) {
  const ModelCost cost = model_cost(model_preset("gpt2").config);
  EXPECT_EQ(cost.key_value_bytes_per_token, 2 * 12 * 768 * 4);
  EXPECT_EQ(cost.run_bytes, 124'439'808 * 4 + 1024 * 73'728);
  EXPECT_EQ(cost.train_bytes, 124'439'808LL * 16);
  const double multiplied = 12.0 * 12 * 768 * 768 + 50257.0 * 768;
  EXPECT_DOUBLE_EQ(cost.flops_per_token, 2 * multiplied + 2.0 * 12 * 768 * 1024);
  EXPECT_DOUBLE_EQ(cost.train_flops_per_token, 3 * cost.flops_per_token);
}

TEST(Presets, AreFoundByName) {
  EXPECT_TRUE(is_model_preset("shakespeare-char"));
  EXPECT_FALSE(is_model_preset("gpt5"));
  expect_error(
      ErrorCode::not_found, [] { model_preset("gpt5"); }, "'gpt5'", "gpt2-xl");
  for (const ModelPreset& preset : model_presets()) {
    EXPECT_NO_THROW(preset.config.validate()) << preset.name;
    if (preset.name == "qwen3-0.6b") continue;  // 16 heads of 128 in a stream of 1024
    EXPECT_EQ(preset.config.attention_width(), preset.config.channels) << preset.name;
  }
}

}  // namespace
}  // namespace heed
