#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "base/directories.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "formats/model_files.h"
#include "train/run_directory.h"
#include "train/stop_after.h"
#include "train/training.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::small_settings;
using testing::StopAfter;
using testing::Training;

TEST_F(Training, LearnsAndRecords) {
  TrainRequest learn = request("run");
  learn.settings.steps = 150;
  learn.settings.model.embedding_dropout = learn.settings.model.attention_dropout =
      learn.settings.model.residual_dropout = 0;
  const TrainSummary summary = train(learn);
  EXPECT_EQ(summary.steps, 150);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_LT(summary.train_loss, 1.0);
  ASSERT_TRUE(summary.validation.has_value());
  EXPECT_LT(summary.validation->nats_per_token, 1.0);

  const Transformer last = load_transformer(StacksWanted::one, directory_ / "run" / "last");
  EXPECT_EQ(last.specification().channels, 16);
  EXPECT_NO_THROW(load_transformer(StacksWanted::one, directory_ / "run" / "best"));
  EXPECT_NO_THROW(load_tokenizer(directory_ / "run" / "best"));
  std::ifstream metrics(directory_ / "run" / "metrics.jsonl");
  int losses = 0;
  int validations = 0;
  for (std::string line; std::getline(metrics, line);) {
    const Json json = Json::parse(line);
    losses += json.contains("loss");
    validations += json.contains("val_loss");
  }
  EXPECT_EQ(losses, 150);
  EXPECT_EQ(validations, 30);
}

TEST_F(Training, GoesStepByStep) {
  train(request("whole"));
  std::int64_t steps = 0;
  TrainingRun run(request("steps"));
  while (run.step()) ++steps;
  const TrainSummary summary = run.finish();
  EXPECT_EQ(steps, small_settings().steps);
  EXPECT_EQ(summary.steps, steps);
  EXPECT_FALSE(summary.interrupted);
  EXPECT_EQ(weights("steps"), weights("whole"));
}

TEST_F(Training, KeepsModelsOfSteps) {
  TrainRequest keeping = request("kept");
  keeping.settings.keep_every = 10;
  train(keeping);
  const RunDirectory run(directory_ / "kept");
  std::vector<std::string> kept;
  for (const auto& entry : std::filesystem::directory_iterator(run.checkpoints())) {
    kept.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(kept,
              ::testing::UnorderedElementsAre("00000000", "00000010", "00000020", "00000024"));
  const auto bytes = [](const std::filesystem::path& model) {
    return read_text_file(model / "model.safetensors");
  };
  EXPECT_EQ(bytes(run.checkpoint(24)), bytes(run.last()));
  EXPECT_NE(bytes(run.checkpoint(0)), bytes(run.checkpoint(10)));
  EXPECT_NO_THROW(load_tokenizer(run.checkpoint(10)));
  // Keeping changes nothing of the training.
  train(request("not-kept"));
  EXPECT_EQ(weights("kept"), weights("not-kept"));
  EXPECT_FALSE(std::filesystem::exists(RunDirectory(directory_ / "not-kept").checkpoints()));
}

TEST_F(Training, KeepsTheSameModelsWhenItIsResumed) {
  TrainRequest whole = request("whole");
  whole.settings.keep_every = 10;
  train(whole);
  TrainRequest stopped = request("stopped");
  stopped.settings.keep_every = 10;
  StopAfter observer(13);
  stopped.observer = &observer;
  stopped.stop = &observer.flag;
  train(stopped);
  const RunDirectory run(directory_ / "stopped");
  // A kill while a checkpoint was written leaves parts of it.
  make_directory(run.checkpoints() / "00000020.partial-checkpoint");
  write_text_file(run.checkpoints() / "00000020.partial-checkpoint" / "config.json", "{");
  TrainRequest resumed = request("stopped");
  resumed.start = RunStart::resume;
  resumed.settings = run.read_record().settings;
  train(resumed);
  for (const std::int64_t step : {0, 10, 20, 24}) {
    EXPECT_EQ(
        read_text_file(run.checkpoint(step) / "model.safetensors"),
        read_text_file(RunDirectory(directory_ / "whole").checkpoint(step) / "model.safetensors"))
        << step;
  }
  EXPECT_FALSE(std::filesystem::exists(run.checkpoints() / "00000020.partial-checkpoint"));
}

TEST_F(Training, ResumesToTheBitFromAnyStep) {
  train(request("whole"));
  // Epochs end inside the run: 24 steps of 6 sequences over about 150 windows.
  for (const std::int64_t step : {1, 7, 13, 23}) {
    const std::string out = "stopped-" + std::to_string(step);
    TrainRequest stopped = request(out);
    StopAfter observer(step);
    stopped.observer = &observer;
    stopped.stop = &observer.flag;
    const TrainSummary summary = train(stopped);
    EXPECT_TRUE(summary.interrupted);
    EXPECT_EQ(summary.steps, step);

    TrainRequest resumed = request(out);
    resumed.start = RunStart::resume;
    resumed.settings = RunDirectory(resumed.out).read_record().settings;
    EXPECT_EQ(train(resumed).steps, 24);
    EXPECT_EQ(weights(out), weights("whole")) << "stopped after step " << step;
  }
}

// The lines of a run's metrics, but for what the clock says.
std::vector<Json> metrics_of(const std::filesystem::path& run) {
  std::vector<Json> lines;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    Json parsed = Json::parse(line);
    parsed.erase("tokens_per_s");
    parsed.erase("seconds");
    lines.push_back(std::move(parsed));
  }
  return lines;
}

// Asks to stop a moment after the first step, while the second gathers its many gradients.
class StopInTheSecondStep : public TrainObserver {
 public:
  void stepped(const StepReport& report) override {
    if (report.step != 1) return;
    late_ = std::async(std::launch::async, [this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      flag = true;
    });
  }
  std::atomic<bool> flag = false;

 private:
  std::future<void> late_;
};

// Steps of many parts, and of one large part: it stops between layers.
TEST_F(Training, StopsWithinAStepAndResumesToTheBit) {
  for (const auto& [batch_size, accumulation] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1000}, {3000, 1}}) {
    const std::string name = std::to_string(batch_size);
    TrainRequest whole = request("whole-" + name);
    whole.settings.steps = 2;
    whole.settings.batch_size = batch_size;
    whole.settings.accumulation = accumulation;
    whole.settings.evaluate_every = 0;
    train(whole);

    TrainRequest cut = whole;
    cut.out = directory_ / ("cut-" + name);
    StopInTheSecondStep observer;
    cut.observer = &observer;
    cut.stop = &observer.flag;
    const TrainSummary summary = train(cut);
    EXPECT_TRUE(summary.interrupted);
    EXPECT_EQ(summary.steps, 1) << name;

    TrainRequest resumed = whole;
    resumed.out = cut.out;
    resumed.start = RunStart::resume;
    resumed.settings = RunDirectory(resumed.out).read_record().settings;
    train(resumed);
    EXPECT_EQ(weights("cut-" + name), weights("whole-" + name));
  }
}

// A measurement or a sample that is stopped is repeated, with the evaluation before it.
TEST_F(Training, RepeatsAMeasurementOrSampleThatWasStopped) {
  std::atomic<bool> stop{false};
  bool interrupts = false;
  const auto step_in = [&](bool measures) {
    TrainRequest run = request(measures ? "measured" : "sampled");
    run.settings.sample_every = 5;
    const auto interrupted = [&] {
      if (!interrupts) return;
      stop = true;
      throw Error(ErrorCode::interrupted, "stopped");
    };
    run.measure = [=](const Transformer&, const Tokenizer&) {
      if (measures) interrupted();
      return OrderedJson{{"measured", 1}};
    };
    run.sample = [=](const Transformer&, const Tokenizer&) {
      if (!measures) interrupted();
      return std::string("a sample");
    };
    run.stop = &stop;
    return run;
  };
  for (const bool measures : {true, false}) {
    interrupts = true;
    stop = false;
    TrainRequest run = step_in(measures);
    EXPECT_TRUE(train(run).interrupted);
    EXPECT_FALSE(RunDirectory(run.out).is_finished());
    interrupts = false;
    stop = false;
    run.start = RunStart::resume;
    run.settings = RunDirectory(run.out).read_record().settings;
    EXPECT_FALSE(train(run).interrupted);
  }
  EXPECT_EQ(metrics_of(directory_ / "measured"), metrics_of(directory_ / "sampled"));
  EXPECT_EQ(weights("measured"), weights("sampled"));
}

// With all that comes after a step: an evaluation, a measure, a sample, a model that is kept.
TEST_F(Training, MakesUpForAnEvaluationThatWasStopped) {
  const auto with_everything = [&](const std::string& out) {
    TrainRequest everything = request(out);
    everything.settings.sample_every = 5;
    everything.settings.keep_every = 10;
    everything.measure = [](const Transformer&, const Tokenizer&) {
      return OrderedJson{{"measured", 1}};
    };
    everything.sample = [](const Transformer&, const Tokenizer&) { return "a sample"; };
    return everything;
  };
  train(with_everything("whole"));
  const RunDirectory whole(directory_ / "whole");
  const auto bytes = [](const std::filesystem::path& model) {
    return read_text_file(model / "model.safetensors");
  };
  for (const std::int64_t step : {5, 20, 24}) {
    const std::string out = "stopped-" + std::to_string(step);
    TrainRequest stopped = with_everything(out);
    const RunDirectory run(stopped.out);
    StopAfter observer(step);  // an evaluation is due, and sees the stop
    stopped.observer = &observer;
    stopped.stop = &observer.flag;
    const TrainSummary summary = train(stopped);
    EXPECT_TRUE(summary.interrupted);
    EXPECT_EQ(summary.steps, step);
    const std::vector<Json> lines = metrics_of(stopped.out);
    EXPECT_EQ(lines.back()["step"], step);
    EXPECT_TRUE(lines.back().contains("loss")) << lines.back();
    EXPECT_FALSE(run.is_finished());

    TrainRequest resumed = with_everything(out);
    resumed.start = RunStart::resume;
    resumed.settings = run.read_record().settings;
    resumed.stop = &observer.flag;  // asked again at once: nothing is done yet, nothing is lost
    EXPECT_TRUE(train(resumed).interrupted);
    EXPECT_EQ(metrics_of(stopped.out), lines);
    // A kill after the evaluation was made up for and before that was saved leaves its line.
    run.append_metrics({{"step", step}, {"val_loss", 1}});

    resumed.stop = nullptr;
    EXPECT_FALSE(train(resumed).interrupted);
    EXPECT_EQ(metrics_of(run.root()), metrics_of(whole.root())) << "stopped at step " << step;
    EXPECT_EQ(bytes(run.last()), bytes(whole.last()));
    EXPECT_EQ(bytes(run.best()), bytes(whole.best()));
    EXPECT_EQ(bytes(run.checkpoint(20)), bytes(whole.checkpoint(20)));
    EXPECT_TRUE(run.is_finished());
    resumed.settings = run.read_record().settings;
    train(resumed);  // nothing is left to be done, or done twice
    EXPECT_EQ(metrics_of(run.root()), metrics_of(whole.root()));
  }
}

// Everything is saved by then, and the evaluation may take long.
TEST_F(Training, MayBeStoppedInTheLastEvaluation) {
  TrainRequest last = request("last");
  StopAfter observer(last.settings.steps);
  last.observer = &observer;
  last.stop = &observer.flag;
  const TrainSummary stopped = train(last);
  EXPECT_TRUE(stopped.interrupted);
  EXPECT_EQ(stopped.steps, last.settings.steps);
  EXPECT_FALSE(stopped.validation.has_value());

  last.start = RunStart::resume;
  last.settings = RunDirectory(last.out).read_record().settings;
  last.observer = nullptr;
  last.stop = nullptr;
  const TrainSummary resumed = train(last);
  EXPECT_FALSE(resumed.interrupted);
  EXPECT_TRUE(resumed.validation.has_value());
  EXPECT_TRUE(std::isnan(resumed.train_loss));  // no step was left to have one
}

TEST_F(Training, LeavesADirectoryThatAnotherTrainsInAlone) {
  TrainRequest run = request("run");
  train(run);
  const std::string before = read_text_file(directory_ / "run" / "metrics.jsonl");
  const DirectoryLock other(run.out);
  run.start = RunStart::resume;
  run.settings = RunDirectory(run.out).read_record().settings;
  expect_error(
      ErrorCode::conflict, [&] { train(run); }, run.out.string(), "another process");
  EXPECT_EQ(read_text_file(directory_ / "run" / "metrics.jsonl"), before);
}

TEST_F(Training, MicroBatchesAddUpToTheBatch) {
  // The same sequences in one batch or in two: equal up to the order of summation.
  TrainRequest one = request("one");
  one.settings.model.embedding_dropout = one.settings.model.attention_dropout =
      one.settings.model.residual_dropout = 0;
  TrainRequest two = one;
  two.out = directory_ / "two";
  one.settings.batch_size = 6;
  one.settings.accumulation = 1;
  EXPECT_NEAR(train(one).train_loss, train(two).train_loss, 1e-4);
}

TEST_F(Training, FineTunesAModel) {
  TrainRequest base = request("base");
  train(base);
  TrainRequest tuned = request("tuned");
  tuned.from = directory_ / "base" / "last";
  tuned.settings.model = read_stack_config(tuned.from / config_file_name);
  tuned.settings.steps = 2;
  EXPECT_LT(train(tuned).train_loss, 3.0);  // an untrained model starts at log(28) = 3.3
  // Integers are no weights to go on from.
  save_transformer(load_transformer(StacksWanted::one, tuned.from), directory_ / "short", {},
                   kernels::WeightFormat::int8);
  write_text_file(directory_ / "short" / "tokenizer.json",
                  read_text_file(tuned.from / "tokenizer.json"));
  TrainRequest shortened = tuned;
  shortened.out = directory_ / "never";
  shortened.from = directory_ / "short";
  expect_error(
      ErrorCode::unsupported, [&] { train(shortened); }, "weights in int8");
  tuned.out = directory_ / "other";
  tuned.settings.model.layers = 3;
  expect_error(
      ErrorCode::conflict, [&] { train(tuned); }, "another shape");
}

TEST_F(Training, AFactorMultipliesTheLearningRateOfEveryStep) {
  const std::atomic<double> half = 0.5;
  TrainRequest plain = request("plain");
  TrainRequest slower = request("slower");
  slower.learning_rate_factor = &half;
  train(plain);
  train(slower);
  const auto before = metrics_of(directory_ / "plain");
  const auto after = metrics_of(directory_ / "slower");
  ASSERT_EQ(before.size(), after.size());
  int rates = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].contains("learning_rate")) continue;
    ++rates;
    EXPECT_DOUBLE_EQ(after[i]["learning_rate"].get<double>(),
                     0.5 * before[i]["learning_rate"].get<double>());
  }
  EXPECT_EQ(rates, request("plain").settings.steps);
  EXPECT_EQ(after[0]["loss"], before[0]["loss"]);  // of the same weights
  EXPECT_NE(after[1]["loss"], before[1]["loss"]);
}

// Their squares add up to that of the whole gradient.
TEST_F(Training, NormsOfTheGradientsPartsAreThoseOfTheWhole) {
  train(request("run"));
  int seen = 0;
  for (const Json& row : metrics_of(directory_ / "run")) {
    if (!row.contains("gradient_norms")) continue;
    EXPECT_EQ(row["step"].get<int>() % 5, 0);
    double sum = 0;
    for (const auto& [part, norm] : row["gradient_norms"].items()) {
      sum += norm.get<double>() * norm.get<double>();
    }
    EXPECT_EQ(row["gradient_norms"].size(), 4U);  // embedding, two blocks, final
    EXPECT_NEAR(std::sqrt(sum), row["gradient_norm"].get<double>(),
                1e-5 * row["gradient_norm"].get<double>());
    ++seen;
  }
  EXPECT_EQ(seen, 4);
}

TEST_F(Training, RecordsTheEntropyOfItsTokens) {
  TrainRequest known = request("run");
  known.entropy = 270.0;
  train(known);
  const RunRecord record = RunDirectory(directory_ / "run").read_record();
  // The text has 1,350 characters, each a token; one more ends it where there is such a token.
  ASSERT_TRUE(record.entropy_per_token.has_value());
  EXPECT_NEAR(*record.entropy_per_token, 270.0 / 1350, 1e-3);
}

}  // namespace
}  // namespace heed
