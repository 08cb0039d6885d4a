#include "train/masking.h"

#include <gtest/gtest.h>

#include <map>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "kernels/kernels.h"
#include "tokenizer/train_byte_pair.h"
#include "train/settings.h"
#include "train/trainer.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

std::unique_ptr<Tokenizer> with_mask() {
  const std::string_view text = "the quick brown fox jumps over the lazy dog";
  return train_byte_pair_tokenizer(
      std::span(&text, 1), {.vocabulary_size = 300, .special_tokens = {"<|endoftext|>", "<mask>"}});
}

TrainSettings masked_settings(std::int64_t batch, std::int64_t length) {
  TrainSettings settings;
  settings.task = Task::masked;
  settings.batch_size = batch;
  settings.model.context = length;
  settings.seed = 9;
  return settings;
}

// 64 sequences of 256 tokens: 16,384 draws, whose shares stray by less than 0.4 % (4 deviations of
// the sampling error are 4·√(0.15·0.85/16384) = 1.1 % of all, and 4·√(0.16/2458) = 3.2 % of them).
TEST(Masking, HidesTheRightShares) {
  const auto tokenizer = with_mask();
  const TrainSettings settings = masked_settings(64, 256);
  MaskedBatch masked(*tokenizer, settings);
  Tensor<std::int32_t> tokens(Shape{64, 256}), following(Shape{64, 256});
  for (std::int64_t i = 0; i < tokens.view().size(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>(i % 200);
    following.data()[i] = 1;
  }
  const std::int32_t special = *tokenizer->end_of_text();
  tokens.view()[3](7) = special;
  following.view()[5](255) = kernels::ignored_target;
  masked.hide(tokens, following, 0);
  std::map<std::string, double> counts;
  for (std::int64_t b = 0; b < 64; ++b) {
    for (std::int64_t t = 0; t < 256; ++t) {
      const std::int32_t token = tokens.view()[b](t), shown = masked.tokens()[b](t);
      if (masked.targets()[b](t) == kernels::ignored_target) {
        EXPECT_EQ(shown, token);
        continue;
      }
      EXPECT_EQ(masked.targets()[b](t), token);
      counts["hidden"] += 1;
      counts[shown == *tokenizer->mask() ? "mask" : shown == token ? "same" : "other"] += 1;
    }
  }
  EXPECT_EQ(masked.targets()[3](7), kernels::ignored_target);
  EXPECT_EQ(masked.targets()[5](255), kernels::ignored_target);
  const double hidden = counts["hidden"];
  EXPECT_NEAR(hidden / (64 * 256), 0.15, 0.011);
  EXPECT_NEAR(counts["mask"] / hidden, 0.8, 0.033);
  EXPECT_NEAR(counts["same"] / hidden, 0.1, 0.025);
  EXPECT_NEAR(counts["other"] / hidden, 0.1, 0.025);
}

TEST(Masking, IsAFunctionOfSeedAndSequence) {
  const auto tokenizer = with_mask();
  Tensor<std::int32_t> tokens(Shape{2, 64}), following(Shape{2, 64});
  const auto hidden = [&](std::int64_t batch, std::uint64_t pass, std::uint64_t seed) {
    TrainSettings settings = masked_settings(batch, 64);
    settings.seed = seed;
    MaskedBatch masked(*tokenizer, settings);
    masked.hide(tokens, following, pass);
    const auto targets = masked.targets();
    return std::vector<std::int32_t>(targets.data(), targets.data() + targets.size());
  };
  const auto first = hidden(2, 0, 9);
  EXPECT_EQ(hidden(2, 0, 9), first);
  EXPECT_NE(hidden(2, 1, 9), first);
  EXPECT_NE(hidden(2, 0, 8), first);
  EXPECT_NE(std::vector(first.begin(), first.begin() + 64),
            std::vector(first.begin() + 64, first.end()));
  // The second of two is the next one of one.
  const auto second = hidden(1, 1, 9);
  EXPECT_TRUE(std::equal(second.begin(), second.begin() + 64, first.begin() + 64));
}

// A text in which every token follows from its neighbours on both sides.
TEST(Masking, TrainsAModelThatReadsBothSides) {
  const TemporaryDirectory directory;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  write_text_file(directory / "text.txt", text);
  TrainSettings settings = train_preset("shakespeare-masked");
  settings.model.layers = 1;
  set_setting(settings, "heads", "2");
  set_setting(settings, "channels", "32");
  settings.model.context = 40;
  settings.model.vocabulary_size = 290;
  settings.steps = 1800;
  settings.batch_size = 8;
  settings.learning_rate = 3e-3;
  settings.model.initial_deviation = 0.15F;  // for so few channels
  settings.warmup_steps = 20;
  settings.evaluate_every = 0;
  settings.checkpoint_every = 0;
  const TrainSummary summary = train({.settings = settings,
                                      .data = {directory / "text.txt"},
                                      .out = directory / "run",
                                      .cache = directory / "cache"});
  ASSERT_TRUE(summary.validation.has_value());
  // A guess by frequency alone costs 2.2 nats, the entropy of the sentence's tokens, and that is
  // where models stay that do not see what stands around.
  EXPECT_LT(summary.validation->nats_per_token, 0.8);
}

TEST(Masking, NeedsAMaskToken) {
  const std::string_view text = "a text";
  const auto tokenizer = train_byte_pair_tokenizer(std::span(&text, 1), {.vocabulary_size = 258});
  expect_error(
      ErrorCode::invalid_argument, [&] { require_mask_token(*tokenizer, "bpe"); }, "'bpe'",
      "<mask>");
}

}  // namespace
}  // namespace heed
