// Training through the public interface.
#include "heed/train.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "heed/heed.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

std::string training_text() {
  std::string text;
  for (int i = 0; i < 30; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  return text;
}

class TrainModel : public ::testing::Test {
 protected:
  TrainModel() { ::setenv("HEED_CACHE", (directory_ / "cache").c_str(), 1); }
  ~TrainModel() override { ::unsetenv("HEED_CACHE"); }

  TrainingOptions options(const std::string& out) const {
    return {.text = training_text(),
            .out = directory_ / out,
            .settings = {{"layers", "1"},
                         {"heads", "2"},
                         {"channels", "16"},
                         {"context", "16"},
                         {"tokenizer", "char"},
                         {"dropout", "0"},
                         {"precision", "f32"},  // not what is faster at the moment
                         {"steps", "12"},
                         {"batch_size", "3"},
                         {"warmup_steps", "2"},
                         {"learning_rate", "1e-2"},
                         {"evaluate_every", "6"},
                         {"sample_every", "6"},
                         {"sample_tokens", "4"}}};
  }

  TemporaryDirectory directory_;
};

TEST_F(TrainModel, LearnsAndReports) {
  TrainingOptions asked = options("run");
  std::vector<TrainingLoss> told;
  std::vector<TrainingLoss> evaluated;
  int samples = 0;
  asked.progress = [&](const TrainingProgress& now) {
    EXPECT_EQ(now.steps, 12);
    if (now.validation_loss) {
      evaluated.push_back({now.step, *now.validation_loss});
    } else {
      told.push_back({now.step, now.loss});
    }
  };
  asked.sampled = [&](std::int64_t, const std::string&) { ++samples; };
  const TrainingResult result = train_model(asked);
  EXPECT_EQ(result.steps, 12);
  ASSERT_EQ(result.losses.size(), 12U);
  EXPECT_LT(result.losses.back().loss, result.losses.front().loss);
  ASSERT_EQ(told.size(), 12U);
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_EQ(told[i].step, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(told[i].loss, result.losses[i].loss);
  }
  ASSERT_EQ(evaluated.size(), 2U);
  EXPECT_EQ(evaluated.back().step, 12);
  ASSERT_GE(result.validation.size(), 2U);
  EXPECT_EQ(result.validation.back().loss, evaluated.back().loss);
  EXPECT_TRUE(result.validation_loss.has_value());
  EXPECT_EQ(samples, 2);
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(Model::load(result.checkpoint).dimensions().channels, 16);
  EXPECT_EQ(read_text_file(directory_ / "run" / "text.txt"), training_text());
}

TEST_F(TrainModel, GoesOnWhereItWasStopped) {
  const TrainingResult whole = train_model(options("whole"));
  std::atomic<bool> stop{false};
  TrainingOptions asked = options("stopped");
  asked.stop = &stop;
  asked.progress = [&](const TrainingProgress& now) { stop = now.step == 5; };
  const TrainingResult begun = train_model(asked);
  EXPECT_TRUE(begun.interrupted);
  EXPECT_EQ(begun.steps, 5);
  const TrainingResult rest = train_model({.out = directory_ / "stopped", .resume = true});
  EXPECT_EQ(rest.steps, 12);
  ASSERT_EQ(rest.losses.size(), 7U);
  EXPECT_EQ(rest.losses.front().step, 6);
  EXPECT_EQ(rest.losses.back().loss, whole.losses.back().loss) << "to the bit";
}

TEST_F(TrainModel, FineTunes) {
  const TrainingResult base = train_model(options("base"));
  TrainingOptions asked{.text = training_text(), .out = directory_ / "tuned"};
  asked.from = base.checkpoint;
  asked.settings = {{"steps", "2"}, {"batch_size", "3"}, {"tokenizer", base.checkpoint.string()}};
  const TrainingResult tuned = train_model(asked);
  EXPECT_EQ(tuned.steps, 2);
  EXPECT_LT(tuned.losses.front().loss, base.losses.front().loss) << "it begins trained";
}

TEST_F(TrainModel, RefusesWhatCannotBe) {
  const auto refuses = [&](ErrorCode code, const TrainingOptions& asked,
                           const std::string& message) {
    expect_error(
        code, [&] { train_model(asked); }, message);
  };
  TrainingOptions wrong = options("run");
  wrong.settings = {{"stepz", "1"}};
  refuses(ErrorCode::invalid_argument, wrong, "steps");
  wrong.settings = {{"steps", "many"}};
  refuses(ErrorCode::invalid_argument, wrong, "many");
  wrong = options("run");
  wrong.text.clear();
  refuses(ErrorCode::invalid_argument, wrong, "text");
  wrong.files = {"/nowhere.txt"};
  refuses(ErrorCode::not_found, wrong, "/nowhere.txt");
  wrong.text = "both";
  refuses(ErrorCode::invalid_argument, wrong, "not both");
  refuses(ErrorCode::invalid_argument, {.text = "x"}, "out");
  wrong = options("run");
  wrong.preset = "no such preset";
  refuses(ErrorCode::not_found, wrong, "no such preset");
  wrong = options("run");
  wrong.from = directory_ / "nowhere";
  refuses(ErrorCode::not_found, wrong, "nowhere");
  wrong = options("run");
  wrong.settings.emplace_back("measure", "induction");
  refuses(ErrorCode::unsupported, wrong, "measure");
  refuses(ErrorCode::not_found, {.out = directory_ / "none", .resume = true}, "none");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run")) << "nothing is left behind";
  train_model(options("run"));
  refuses(ErrorCode::conflict, options("run"), "already holds a run");
}

TEST_F(TrainModel, TrainsATranslatorOnPairs) {
  std::string english, german;
  for (int i = 0; i < 40; ++i) {
    english += i % 2 == 0 ? "one dog barks\n" : "two cats sleep here\n";
    german += i % 2 == 0 ? "ein Hund bellt\n" : "hier schlafen zwei Katzen\n";
  }
  write_text_file(directory_ / "text.en", english);
  write_text_file(directory_ / "text.de", german);
  const TrainingOptions asked{.pairs = {directory_ / "text.en", directory_ / "text.de"},
                              .validation_pairs = {directory_ / "text.en", directory_ / "text.de"},
                              .out = directory_ / "translator",
                              .preset = "translator-tiny",
                              .settings = {{"steps", "150"}, {"evaluate_every", "75"}}};
  const TrainingResult result = train_model(asked);
  EXPECT_EQ(result.steps, 150);
  // Two sentences are learned by heart.
  ASSERT_TRUE(result.validation_loss.has_value());
  EXPECT_LT(*result.validation_loss, 0.3);
  ASSERT_TRUE(result.bleu.has_value());
  EXPECT_GT(*result.bleu, 99);
  const TrainingResult again = train_model({.out = asked.out, .resume = true});
  EXPECT_EQ(again.validation_loss, result.validation_loss);

  TrainingOptions text = options("text");
  text.text.clear();
  text.pairs = asked.pairs;
  text.preset = "shakespeare-char-cpu";
  expect_error(
      ErrorCode::invalid_argument, [&] { train_model(text); }, "`pairs`", "task");
  TrainingOptions both = asked;
  both.out = directory_ / "both";
  both.text = "a text";
  expect_error(
      ErrorCode::invalid_argument, [&] { train_model(both); }, "`pairs`", "not both");
}

}  // namespace
}  // namespace heed
