#include "train/settings.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "train/optimizer.h"

namespace heed {
namespace {

using testing::expect_error;

TEST(Settings, AreReadFromTextByName) {
  TrainSettings settings;
  set_setting(settings, "steps", "17");
  set_setting(settings, "learning_rate", "3e-4");
  set_setting(settings, "schedule", "linear");
  set_setting(settings, "bias", "false");
  set_setting(settings, "tokenizer", "some/path");
  set_setting(settings, "dropout", "0.25");
  EXPECT_EQ(settings.steps, 17);
  EXPECT_EQ(settings.learning_rate, 3e-4);
  EXPECT_EQ(settings.schedule, Schedule::linear);
  EXPECT_FALSE(has_biases(settings.model));
  EXPECT_EQ(settings.tokenizer, "some/path");
  EXPECT_EQ(settings.model.attention_dropout, 0.25F);
  EXPECT_EQ(settings.model.residual_dropout, 0.25F);
}

TEST(Settings, SizesFollowTheWidthUntilTheyAreSet) {
  TrainSettings settings;
  apply_settings(settings, Json{{"feed_forward", 100}, {"channels", 64}, {"heads", 4}}, "test");
  EXPECT_EQ(settings.model.head_size(), 16);
  EXPECT_EQ(settings.model.feed_forward(), 100);
  set_setting(settings, "channels", "128");
  EXPECT_EQ(settings.model.head_size(), 32);
  EXPECT_EQ(settings.model.feed_forward(), 512);
}

TEST(Settings, SurviveJson) {
  TrainSettings settings = train_preset("shakespeare-char");
  settings.seed = 99;
  TrainSettings read;
  apply_settings(read, Json::parse(settings_to_json(settings).dump()), "test");
  EXPECT_TRUE(settings_differences(settings, read).empty());
  read.batch_size = 3;
  EXPECT_EQ(settings_differences(settings, read), std::vector<std::string>{"batch_size: 64 -> 3"});
}

TEST(Settings, RefuseWhatCannotBe) {
  TrainSettings settings;
  expect_error(
      ErrorCode::invalid_argument, [&] { set_setting(settings, "learning_rat", "1"); },
      "learning_rat", "'learning_rate'");
  expect_error(
      ErrorCode::invalid_argument, [&] { set_setting(settings, "steps", "many"); }, "steps",
      "whole number", "many");
  expect_error(
      ErrorCode::invalid_argument, [&] { set_setting(settings, "schedule", "step"); },
      "constant, linear, cosine");
  set_setting(settings, "heads", "5");
  expect_error(
      ErrorCode::invalid_argument, [&] { settings.validate(); }, "768", "5 heads");
  set_setting(settings, "heads", "12");
  settings.batch_size = 0;
  expect_error(
      ErrorCode::invalid_argument, [&] { settings.validate(); }, "batch_size", "0");
}

TEST(Settings, RefuseNumbersThatDoNotFit) {
  const auto refused = [](const std::string& name, const std::string& value, const char* expected) {
    TrainSettings settings;
    expect_error(
        ErrorCode::invalid_argument,
        [&] {
          set_setting(settings, name, value);
          settings.validate();
        },
        name, value, expected);
  };
  refused("batch_size", "99999999999", "between 1 and 65536");
  refused("accumulation", "99999999999", "between 1 and 65536");
  refused("steps", "4294967297", "between 1 and 4294967296");
  refused("steps", "9223372036854775808", "below 2^63");
  refused("seed", "-1", "between 0 and 2^64 - 1");
  refused("attention_dropout", "1", "below 1");
  TrainSettings settings;
  set_setting(settings, "seed", "18446744073709551615");
  EXPECT_EQ(settings.seed, 18446744073709551615U);
  TrainSettings read;
  apply_settings(read, Json::parse(settings_to_json(settings).dump()), "test");
  EXPECT_EQ(read.seed, settings.seed);
}

TEST(Schedule, WarmsUpAndFallsToTheMinimum) {
  TrainSettings settings;
  settings.steps = 1100;
  settings.warmup_steps = 100;
  settings.learning_rate = 1.0;
  settings.min_learning_rate = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate_at(settings, 0), 1.0 / 101);
  EXPECT_DOUBLE_EQ(learning_rate_at(settings, 100), 1.0);
  EXPECT_NEAR(learning_rate_at(settings, 600), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate_at(settings, 5000), 0.1, 1e-12);
  settings.schedule = Schedule::linear;
  EXPECT_NEAR(learning_rate_at(settings, 350), 0.775, 1e-12);
  settings.schedule = Schedule::constant;
  EXPECT_EQ(learning_rate_at(settings, 1000), 1.0);
}

// Two steps of warmup, then 1/√step: at four times the step of the peak, half of it.
TEST(Schedules, InverseSquareRootFallsFromTheWarmup) {
  TrainSettings settings;
  settings.schedule = Schedule::inverse_sqrt;
  settings.learning_rate = 1;
  settings.warmup_steps = 24;
  EXPECT_DOUBLE_EQ(learning_rate_at(settings, 0), 1.0 / 25);
  EXPECT_DOUBLE_EQ(learning_rate_at(settings, 24), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_at(settings, 99), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(settings, 9999), 0.05);
}

TEST(Settings, DescribeAnEncoderAndItsDecoder) {
  TrainSettings settings = train_preset("multi30k-en-de");
  set_setting(settings, "encoder_layers", "3");
  set_setting(settings, "decoder_layers", "2");
  set_setting(settings, "channels", "64");
  set_setting(settings, "norm_placement", "post");
  settings.validate();
  const Architecture architecture = pair_architecture(settings);
  architecture.validate();
  EXPECT_EQ(architecture.encoder().layers, 3);
  EXPECT_EQ(architecture.decoder().layers, 2);
  EXPECT_FLOAT_EQ(architecture.decoder().embedding_scale, 8);
  EXPECT_FALSE(architecture.encoder().final_norm);
  EXPECT_TRUE(architecture.decoder().is_post_norm());
  EXPECT_FALSE(architecture.encoder().is_causal());
  EXPECT_TRUE(architecture.decoder().is_causal());
  EXPECT_FALSE(architecture.decoder().block.cross_attention->mask.kind == MaskKind::causal);
  settings.encoder_layers = 0;
  EXPECT_EQ(pair_architecture(settings).encoder().layers, 2);
}

TEST(Settings, OfEveryTaskAreReadAsTheyAreWritten) {
  for (const char* preset : {"multi30k-en-de", "translator-tiny", "shakespeare-masked"}) {
    const TrainSettings settings = train_preset(preset);
    settings.validate();
    TrainSettings read;
    apply_settings(read, Json::parse(settings_to_json(settings).dump()), "test");
    EXPECT_TRUE(read.model == settings.model) << preset;
    EXPECT_TRUE(settings_differences(settings, read).empty()) << preset;
  }
}

TEST(Settings, RefuseWhatATaskDoesNotHave) {
  const auto refused = [](const char* preset, const char* name, const char* value,
                          const auto&... parts) {
    TrainSettings settings = train_preset(preset);
    set_setting(settings, name, value);
    expect_error(
        ErrorCode::invalid_argument, [&] { settings.validate(); }, name, parts...);
  };
  refused("gpt2", "measure", "bleu", "pairs");
  refused("gpt2", "encoder_layers", "2", "pairs");
  refused("shakespeare-masked", "measure", "induction", "language_model");
  refused("translator-tiny", "tokenizer", "char", "bpe");
  refused("translator-tiny", "batch_tokens", "0", "not 0");
  refused("translator-tiny", "label_smoothing", "1", "below 1");
  refused("translator-tiny", "beams", "0", "not 0");
  refused("shakespeare-masked", "masked_fraction", "0", "above 0");
  TrainSettings settings = train_preset("translator-tiny");
  settings.early_stop = 2;
  settings.evaluate_every = 0;
  expect_error(
      ErrorCode::invalid_argument, [&] { settings.validate(); }, "early_stop", "evaluate_every");
  expect_error(
      ErrorCode::not_found, [] { train_preset("nothing"); }, "'nothing'", "multi30k-en-de", "gpt2");
}

}  // namespace
}  // namespace heed
