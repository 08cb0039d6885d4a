// Training in a process whose locale writes 0,1 for 0.1: the same files to the byte.
#include <gtest/gtest.h>

#include "formats/model_files.h"
#include "support/comma_locale.h"
#include "train/run_directory.h"
#include "train/run_files.h"
#include "train/stop_after.h"
#include "train/training.h"

namespace heed {
namespace {

using testing::CommaLocale;
using testing::expect_same_files;
using testing::StopAfter;

class LocaleTraining : public testing::Training {
 protected:
  TrainRequest resumed(const std::string& out) const {
    TrainRequest request = this->request(out);
    request.start = RunStart::resume;
    request.settings = RunDirectory(request.out).read_record().settings;
    return request;
  }
  TrainRequest in_f32(const std::string& out) const {
    TrainRequest request = this->request(out);
    request.settings.precision = kernels::Precision::f32;  // not the machine's choice
    return request;
  }
};

TEST_F(LocaleTraining, WithADecimalCommaWritesAndResumesTheSameRun) {
  train(in_f32("whole"));
  const CommaLocale comma;
  if (!comma.is_set()) GTEST_SKIP() << "this machine makes no locale with a decimal comma";
  train(in_f32("run"));
  expect_same_files(directory_ / "whole", directory_ / "run");
  const RunRecord record = RunDirectory(directory_ / "run").read_record();
  EXPECT_EQ(record.settings.model.residual_dropout, 0.1F);
  EXPECT_EQ(record.settings.model.initial_deviation, 0.02F);

  TrainRequest stopped = in_f32("stopped");
  StopAfter observer(9);
  stopped.observer = &observer;
  stopped.stop = &observer.flag;
  ASSERT_TRUE(train(stopped).interrupted);
  train(resumed("stopped"));
  expect_same_files(directory_ / "whole", directory_ / "stopped");
}

TEST_F(LocaleTraining, WithADecimalCommaReadsSettingsAndModels) {
  const CommaLocale comma;
  if (!comma.is_set()) GTEST_SKIP() << "this machine makes no locale with a decimal comma";
  TrainSettings settings;
  set_setting(settings, "dropout", "0.25");
  set_setting(settings, "learning_rate", "1.5e-3");
  EXPECT_EQ(settings.model.residual_dropout, 0.25F);
  EXPECT_EQ(settings.learning_rate, 1.5e-3);

  Transformer transformer({.stacks = {testing::small_settings().model}});
  save_transformer(transformer, directory_ / "model");
  const StackSpecification read = read_stack_config(directory_ / "model" / config_file_name);
  EXPECT_EQ(read.residual_dropout, 0.1F);
  EXPECT_EQ(read.block.norm.epsilon, transformer.specification().block.norm.epsilon);
}

}  // namespace
}  // namespace heed
