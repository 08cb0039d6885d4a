// Switching a head off, against a model whose head writes nothing.
#include "microscope/intervene/head_effects.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/expect_error.h"
#include "generate/random_gpt.h"

namespace heed {
namespace {

std::vector<RankedHead> every_head(const GptConfig& config) {
  std::vector<RankedHead> heads;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (std::int64_t head = 0; head < config.heads; ++head) {
      heads.push_back({.layer = layer, .head = head});
    }
  }
  return heads;
}

std::vector<double> probabilities_after(const Gpt& gpt, const std::vector<std::int32_t>& tokens) {
  const Tensor<float> logits = testing::full_logits(gpt, tokens);
  const auto last = logits.span().last(static_cast<std::size_t>(gpt.config().vocabulary_size));
  std::vector<double> result;
  double sum = 0;
  for (const float logit : last) sum += result.emplace_back(std::exp(logit));
  for (double& probability : result) probability /= sum;
  return result;
}

// A head that writes nothing: its columns of the projection (out, in) are zero.
Gpt without_head(Gpt gpt, std::int64_t layer, std::int64_t head) {
  const View<float> projection =
      gpt.parameters().tensor(fmt::format("h.{}.attn.c_proj.weight", layer));
  const std::int64_t size = gpt.config().head_size;
  for (std::int64_t out = 0; out < projection.extent(0); ++out) {
    for (std::int64_t in = head * size; in < (head + 1) * size; ++in) projection(out, in) = 0;
  }
  return gpt;
}

TEST(HeadEffects, EqualThoseOfAHeadThatWritesNothing) {
  const Gpt gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const std::vector<double> with = probabilities_after(gpt, tokens);
  const auto heads = every_head(gpt.config());
  const auto effects = head_effects(gpt, tokens, heads);
  ASSERT_EQ(effects.size(), heads.size());
  for (const HeadEffect& effect : effects) {
    Gpt changed = testing::random_gpt(testing::small_config());
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
  const Gpt gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 5);
  const auto effects = head_effects(gpt, tokens, every_head(gpt.config()));
  EXPECT_TRUE(std::ranges::is_sorted(effects, std::greater{}, &HeadEffect::moved));
  EXPECT_GT(effects.front().moved, 0);
}

TEST(HeadEffects, RefuseATextThatDoesNotFit) {
  const Gpt gpt = testing::random_gpt(testing::small_config());
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { head_effects(gpt, {}, every_head(gpt.config())); },
      "no tokens");
}

}  // namespace
}  // namespace heed
