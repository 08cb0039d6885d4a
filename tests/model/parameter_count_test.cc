#include "model/parameter_count.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "model/parameters.h"
#include "model/presets.h"

namespace heed {
namespace {

TEST(ParameterCount, IsThePublishedOne) {
  EXPECT_EQ(count_parameters(gpt_preset("gpt2").config).total, 124'439'808);
  EXPECT_EQ(count_parameters(gpt_preset("gpt2-medium").config).total, 354'823'168);
  EXPECT_EQ(count_parameters(gpt_preset("gpt2-large").config).total, 774'030'080);
  EXPECT_EQ(count_parameters(gpt_preset("gpt2-xl").config).total, 1'557'611'200);
  EXPECT_EQ(count_parameters(gpt_preset("gpt3").config).total, 174'604'259'328);
}

TEST(ParameterCount, TakesGpt3Apart) {
  const ParameterCount count = count_parameters(gpt_preset("gpt3").config);
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
  std::vector<GptConfig> configs;
  for (const GptPreset& preset : gpt_presets()) configs.push_back(preset.config);
  GptConfig unusual = make_gpt_config(2, 3, 24, 16, 37);
  unusual.head_size = 10;
  unusual.feed_forward = 56;
  unusual.tied_unembedding = false;
  configs.push_back(unusual);
  unusual.has_bias = false;
  configs.push_back(unusual);
  for (const GptConfig& config : configs) {
    const ArenaLayout layout = gpt_layout(config);
    std::int64_t elements = 0;
    for (const auto& entry : layout.entries()) elements += entry.shape.size();
    EXPECT_EQ(count_parameters(config).total, elements);
  }
}

TEST(ModelCost, FollowsFromTheCounts) {
  const ModelCost cost = model_cost(gpt_preset("gpt2").config);
  EXPECT_EQ(cost.key_value_bytes_per_token, 2 * 12 * 768 * 4);
  EXPECT_EQ(cost.run_bytes, 124'439'808 * 4 + 1024 * 73'728);
  EXPECT_EQ(cost.train_bytes, 124'439'808LL * 16);
  const double multiplied = 12.0 * 12 * 768 * 768 + 50257.0 * 768;
  EXPECT_DOUBLE_EQ(cost.flops_per_token, 2 * multiplied + 2.0 * 12 * 768 * 1024);
  EXPECT_DOUBLE_EQ(cost.train_flops_per_token, 3 * cost.flops_per_token);
}

TEST(Presets, AreFoundByName) {
  EXPECT_TRUE(is_gpt_preset("shakespeare-char"));
  EXPECT_FALSE(is_gpt_preset("gpt5"));
  testing::expect_error(
      ErrorCode::not_found, [] { gpt_preset("gpt5"); }, "'gpt5'", "gpt2-xl");
  for (const GptPreset& preset : gpt_presets()) {
    EXPECT_NO_THROW(preset.config.validate()) << preset.name;
    EXPECT_EQ(preset.config.attention_width(), preset.config.channels) << preset.name;
  }
}

}  // namespace
}  // namespace heed
