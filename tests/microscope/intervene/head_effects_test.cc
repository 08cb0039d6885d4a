// Switching a head off, against a model whose head writes nothing.
#include "microscope/intervene/head_effects.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

#include "base/expect_error.h"
#include "generate/random_gpt.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

std::vector<double> probabilities_after(const Transformer& gpt,
                                        const std::vector<std::int32_t>& tokens) {
  const Tensor<float> logits = testing::full_logits(gpt, tokens);
  const auto last =
      logits.span().last(static_cast<std::size_t>(gpt.specification().vocabulary_size));
  std::vector<double> result;
  double sum = 0;
  for (const float logit : last) sum += result.emplace_back(std::exp(logit));
  for (double& probability : result) probability /= sum;
  return result;
}

// A head that writes nothing: its columns of the projection (out, in) are zero.
Transformer without_head(Transformer gpt, std::int64_t layer, std::int64_t head) {
  const View<float> projection = gpt.parameters().tensor(
      testing::gpt2_parameter(fmt::format("h.{}.attn.c_proj.weight", layer)));
  const std::int64_t size = gpt.specification().head_size();
  for (std::int64_t out = 0; out < projection.extent(0); ++out) {
    for (std::int64_t in = head * size; in < (head + 1) * size; ++in) projection(out, in) = 0;
  }
  return gpt;
}

TEST(HeadEffects, EqualThoseOfAHeadThatWritesNothing) {
  const Transformer gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const std::vector<double> with = probabilities_after(gpt, tokens);
  const auto heads = all_heads(gpt.specification());
  const auto effects = head_effects(gpt, tokens, heads);
  ASSERT_EQ(effects.size(), heads.size());
  for (const HeadEffect& effect : effects) {
    Transformer changed = testing::random_gpt(testing::small_config());
    changed = without_head(std::move(changed), effect.layer, effect.head);
    const std::vector<double> without = probabilities_after(changed, tokens);
    double moved = 0, largest_loss = 0;
    for (std::size_t i = 0; i < with.size(); ++i) {
      moved += 0.5 * std::abs(with[i] - without[i]);
      largest_loss = std::max(largest_loss, with[i] - without[i]);
    }
    EXPECT_NEAR(effect.moved, moved, 1e-5) << effect.layer << "." << effect.head;
    EXPECT_NEAR(effect.before - effect.after, largest_loss, 1e-5);
    EXPECT_NEAR(effect.before, with[static_cast<std::size_t>(effect.token)], 1e-5);
  }
}

TEST(HeadEffects, ComeLargestFirst) {
  const Transformer gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const auto effects = head_effects(gpt, tokens, all_heads(gpt.specification()));
  EXPECT_TRUE(std::ranges::is_sorted(effects, std::greater{}, &HeadEffect::moved));
  EXPECT_GT(effects.front().moved, 0);
}

TEST(SelectiveHeads, AreThoseWithTheLargestWeightsElsewhere) {
  const Transformer gpt = testing::random_gpt(testing::small_config());
  const StackSpecification& config = gpt.specification();
  constexpr std::int64_t position = 5;
  QueryRows rows(config, position);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    Tensor<float> pattern(Shape{1, config.heads(), 6, 6});
    // The last head of the last layer attends to token 2; the others to what does not count.
    for (std::int64_t head = 0; head < config.heads(); ++head) {
      const bool is_last = layer == config.layers - 1 && head == config.heads() - 1;
      pattern.view()(0, head, position, is_last ? 2 : head % 2 == 0 ? 0 : 4) = 1;
    }
    rows.observe({PointKind::pattern, layer}, pattern.view());
  }
  const auto heads = selective_heads(config, rows, position, 5, 2);
  ASSERT_EQ(heads.size(), 2U);
  EXPECT_EQ(heads.front(), (HeadName{config.layers - 1, config.heads() - 1}));
}

TEST(HeadToShow, HasTheLargestEffectOfTheHeadsTried) {
  const Transformer gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const std::vector<std::int32_t> read(tokens.begin(), tokens.begin() + 7);
  const auto all = head_effects(gpt, read, all_heads(gpt.specification()));
  const HeadChoiceByEffect shown = head_to_show(gpt, tokens, 6, 6);
  ASSERT_EQ(shown.tried, all.size());  // a model of few heads: all are tried
  EXPECT_EQ(shown.effect.layer, all.front().layer);
  EXPECT_EQ(shown.effect.head, all.front().head);
  EXPECT_EQ(shown.effect.moved, all.front().moved);
}

TEST(HeadToShow, CanBeStopped) {
  const Transformer gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const std::atomic<bool> stop = true;
  testing::expect_error(
      ErrorCode::interrupted, [&] { head_to_show(gpt, tokens, 6, 6, &stop); }, "switching heads");
}

TEST(HeadEffects, RefuseATextThatDoesNotFit) {
  const Transformer gpt = testing::random_gpt(testing::small_config());
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { head_effects(gpt, {}, all_heads(gpt.specification())); },
      "no tokens");
}

}  // namespace
}  // namespace heed
