// What training refuses, and what it stops before.
#include <cmath>

#include "base/expect_error.h"
#include "formats/model_files.h"
#include "train/run_directory.h"
#include "train/training.h"

namespace heed {
namespace {

using testing::expect_error;

class TrainingRefusal : public testing::Training {};

TEST_F(TrainingRefusal, RefusesADirectoryThatHoldsARun) {
  train(request("run"));
  const std::string before = weights("run");
  expect_error(
      ErrorCode::conflict, [&] { train(request("run")); }, "already holds a run", "--resume");
  EXPECT_EQ(weights("run"), before);
}

// `-m DIRECTORY` would go on loading the model that was there.
TEST_F(TrainingRefusal, RefusesADirectoryThatHoldsAModel) {
  const std::filesystem::path out = directory_ / "model";
  save_transformer(Transformer({.stacks = {testing::small_settings().model}}), out);
  const std::string before = read_text_file(out / config_file_name);
  TrainRequest run = request("model");
  expect_error(
      ErrorCode::conflict, [&] { train(run); }, "already holds a model", "--from", "--force");
  EXPECT_EQ(read_text_file(out / config_file_name), before);
  EXPECT_FALSE(RunDirectory(out).holds_a_run());
  run.replaces_model = true;
  train(run);
  EXPECT_TRUE(RunDirectory(out).holds_a_run());
  EXPECT_FALSE(RunDirectory(out).holds_a_model());
}

TEST_F(TrainingRefusal, RefusesToResumeAnotherRun) {
  TrainRequest resumed = request("nothing");
  resumed.start = RunStart::resume;
  expect_error(
      ErrorCode::not_found, [&] { train(resumed); }, "no run to resume");

  train(request("run"));
  resumed.out = directory_ / "run";
  resumed.settings = RunDirectory(resumed.out).read_record().settings;
  resumed.settings.learning_rate = 0.5;
  expect_error(
      ErrorCode::conflict, [&] { train(resumed); }, "learning_rate: 0.01 -> 0.5");
}

TEST_F(TrainingRefusal, RefusesToResumeOnOtherText) {
  train(request("run"));
  TrainRequest resumed = request("run");
  resumed.start = RunStart::resume;
  resumed.settings = RunDirectory(resumed.out).read_record().settings;
  std::string text = read_text_file(directory_ / "text.txt");
  text[3] = 'q';
  write_text_file(directory_ / "text.txt", text);
  expect_error(
      ErrorCode::conflict, [&] { train(resumed); }, "other text");
}

TEST_F(TrainingRefusal, StopsBeforeANumberIsLost) {
  TrainRequest wild = request("wild");
  wild.settings.learning_rate = 1e30;
  wild.settings.min_learning_rate = 1e30;
  wild.settings.checkpoint_every = 1;
  expect_error(
      ErrorCode::diverged, [&] { train(wild); }, "at step", "learning_rate");
  const Transformer saved = load_transformer(StacksWanted::one, directory_ / "wild" / "last");
  EXPECT_TRUE(std::isfinite(saved.parameters().all().front()));
}

TEST_F(TrainingRefusal, SaysWhatIsMissing) {
  TrainRequest none = request("none");
  none.data = {directory_ / "absent.txt"};
  expect_error(
      ErrorCode::not_found, [&] { train(none); }, "absent.txt");
  write_text_file(directory_ / "empty.txt", "");
  none.data = {directory_ / "empty.txt"};
  expect_error(
      ErrorCode::invalid_argument, [&] { train(none); }, "empty");
  write_text_file(directory_ / "short.txt", "a");
  none.data = {directory_ / "short.txt"};
  expect_error(
      ErrorCode::invalid_argument, [&] { train(none); }, "short.txt", "0.1");
  TrainRequest unmeasured = request("unmeasured");
  unmeasured.validation = directory_ / "empty.txt";
  expect_error(
      ErrorCode::invalid_argument, [&] { train(unmeasured); }, "validation", "empty.txt");
  write_text_file(directory_ / "short.txt", "abc");
  none.data = {directory_ / "short.txt"};
  expect_error(
      ErrorCode::invalid_argument, [&] { train(none); }, "tokens", "at least 9");
  // A file where the directory should be.
  TrainRequest blocked = request("text.txt");
  expect_error(
      ErrorCode::input_output, [&] { train(blocked); }, "text.txt");
}

}  // namespace
}  // namespace heed
