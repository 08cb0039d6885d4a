#include "train/settings.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "kernels/instruction_sets.h"
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

Precision automatic(std::int64_t channels) {
  TrainSettings settings;
  settings.model = make_gpt_config(2, 2, channels, 16, 64);
  settings.precision.reset();
  settle_precision(settings);
  return settings.precision.value();
}

TEST(AutomaticPrecision, FollowsTheInstructionSetAndTheWidth) {
  struct BestAgain {
    ~BestAgain() { kernels::use_instruction_set(""); }
  } best_again;
  for (const std::string& name : kernels::available_instruction_sets()) {
    kernels::use_instruction_set(name);
    const Precision wide = name == "AMX_BF16" ? Precision::bf16 : Precision::f32;
    EXPECT_EQ(automatic(768), wide) << name;
    EXPECT_EQ(automatic(128), Precision::f32) << name;
  }
}

TEST(AutomaticPrecision, KeepsWhatIsNamed) {
  for (const Precision named : {Precision::f32, Precision::bf16}) {
    TrainSettings settings = train_preset("gpt2");
    settings.precision = named;
    settle_precision(settings);
    EXPECT_EQ(settings.precision, named);
  }
}

TEST(AutomaticPrecision, PresetsLeaveItToTheMachine) {
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
