#include "train/precision_trial.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "kernels/instruction_sets.h"
#include "train/presets.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace heed {
namespace {

using kernels::Precision;

class HeardNotices : public TrainObserver {
 public:
  void noticed(const std::string& sentence) override { sentences.push_back(sentence); }
  std::vector<std::string> sentences;
};

// A few steps of a tiny shape.
class PrecisionOfARun : public ::testing::Test {
 protected:
  PrecisionOfARun() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "the fox and the hare, " + std::to_string(i * 7 % 11);
    write_text_file(directory_ / "text.txt", text);
    settings_.model = make_gpt_config(2, 2, 16, 16, 64);
    settings_.tokenizer = "char";
    settings_.steps = 2;
    settings_.batch_size = 2;
    settings_.warmup_steps = 1;
    settings_.sample_every = 0;
  }

  TrainRequest request() {
    return {.settings = settings_,
            .data = {directory_ / "text.txt"},
            .out = directory_ / "run",
            .cache = directory_ / "cache",
            .observer = &notices_};
  }
  std::optional<Precision> recorded() const {
    return RunDirectory(directory_ / "run").read_record().settings.precision;
  }

  testing::TemporaryDirectory directory_;
  TrainSettings settings_;
  HeardNotices notices_;
};

TEST(PrecisionTrial, TakesBf16WhereItIsClearlyFaster) {
  EXPECT_TRUE((PrecisionTrial{.f32_seconds = 2, .bf16_seconds = 1}).prefers_bf16());
  EXPECT_FALSE((PrecisionTrial{.f32_seconds = 1.05, .bf16_seconds = 1}).prefers_bf16());
  EXPECT_FALSE((PrecisionTrial{.f32_seconds = 1, .bf16_seconds = 2}).prefers_bf16());
}

TEST(PrecisionTrial, TimesEveryKindOfRun) {
  for (const char* preset : {"shakespeare-char-llama", "shakespeare-masked", "translator-tiny"}) {
    const PrecisionTrial trial = try_precisions(train_preset(preset));
    EXPECT_GT(trial.f32_seconds, 0) << preset;
    EXPECT_GT(trial.bf16_seconds, 0) << preset;
    EXPECT_LT(trial.f32_seconds + trial.bf16_seconds, 1e3) << preset;
  }
}

TEST(PrecisionTrial, LeavesOutTheLayersAndWindowsThatRepeat) {
  TrainSettings settings;
  settings.model = make_gpt_config(3, 2, 16, 32, 90);
  settings.model.block.attention.mask = {.kind = MaskKind::banded, .windows = {4, 8, 16}};
  EXPECT_GT(try_precisions(settings).f32_seconds, 0);
}

TEST(PrecisionTrial, PresetsLeaveThePrecisionToTheMachine) {
  for (const char* preset : {"gpt2", "starter", "multi30k-en-de", "shakespeare-char-cpu"}) {
    EXPECT_FALSE(train_preset(preset).precision.has_value()) << preset;
  }
  TrainSettings settings = train_preset("gpt2");
  EXPECT_EQ(settings_to_json(settings)["precision"], "auto");
  set_setting(settings, "precision", "bf16");
  EXPECT_EQ(settings.precision, Precision::bf16);
  set_setting(settings, "precision", "auto");
  EXPECT_FALSE(settings.precision.has_value());
}

TEST_F(PrecisionOfARun, IsRecordedWhenTheMachineChooses) {
  settings_.precision.reset();
  train(request());
  ASSERT_TRUE(recorded().has_value());
  if (kernels::has_bf16_products()) {
    ASSERT_EQ(notices_.sentences.size(), 1);
    const bool took_bf16 = notices_.sentences[0].ends_with("takes bf16");
    EXPECT_EQ(recorded() == Precision::bf16, took_bf16) << notices_.sentences[0];
  } else {
    EXPECT_EQ(recorded(), Precision::f32);
    EXPECT_TRUE(notices_.sentences.empty());
  }
}

TEST_F(PrecisionOfARun, IsF32WhereBf16IsOnlyEmulated) {
  struct BestAgain {
    ~BestAgain() { kernels::use_instruction_set(""); }
  } best_again;
  kernels::use_instruction_set(kernels::available_instruction_sets().back());
  settings_.precision.reset();
  train(request());
  EXPECT_EQ(recorded(), Precision::f32);
  EXPECT_TRUE(notices_.sentences.empty());
}

TEST_F(PrecisionOfARun, StaysWhatItWasWhenResumed) {
  settings_.precision = Precision::bf16;
  train(request());
  TrainRequest again = request();
  again.start = RunStart::resume;
  again.settings.model.vocabulary_size =
      RunDirectory(directory_ / "run").read_record().settings.model.vocabulary_size;
  again.settings.precision.reset();
  EXPECT_EQ(train(again).steps, 2);
  EXPECT_EQ(recorded(), Precision::bf16);
  EXPECT_TRUE(notices_.sentences.empty());
  again.settings.precision = Precision::f32;
  EXPECT_THROW(train(again), Error);
}

}  // namespace
}  // namespace heed
