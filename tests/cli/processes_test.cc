// heed train in several processes, started by mpirun: the run of one process, to rounding; the same
// to the bit in every run; resumed by any number; and one message for what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/files.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "support/child.h"
#include "support/process.h"

namespace heed {
namespace {

using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_heed;
using testing::TemporaryDirectory;

// Words of a small language, so that losses fall and gradients differ from sequence to sequence.
std::string small_text() {
  static constexpr const char* words[] = {"the ", "cat ", "dog ", "sat ",
                                          "saw ", "a ",   "red ", "mat. "};
  RandomStream random(5, 0);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += words[random.below(8)];
  return text;
}

std::string mpirun(int count) {
  // MPI keeps some memory to its end, which AddressSanitizer would report as lost.
  return "HEED_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
         "PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 "  // the same of Open MPI 5
         "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 "
         "mpirun --oversubscribe -n " +
         std::to_string(count);
}

class Processes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no mpirun here";
    write_text_file(directory_ / "text.txt", small_text());
  }

  std::string path(const std::string& name) const {
    return "'" + (directory_ / name).string() + "'";
  }

  // By `count` processes of one thread each; 1: without mpirun.
  Outcome train(int count, const std::string& arguments) const {
    return run_heed("train " + arguments, count > 1 ? mpirun(count) : "HEED_THREADS=1");
  }
  Outcome train(int count, const std::string& out, const std::string& more) const {
    return train(count,
                 "--data " + path("text.txt") + " --out " + path(out) + " " + settings_ + more);
  }

  std::vector<Json> metrics(const std::string& run, const char* name) const {
    std::istringstream lines(read_text_file(directory_ / run / "metrics.jsonl"));
    std::vector<Json> found;
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line);
      if (json.contains(name)) found.push_back(json);
    }
    return found;
  }

  // All losses of both runs, and their number; `tolerance` relative.
  void expect_same_losses(const std::string& one, const std::string& other,
                          std::size_t count) const {
    for (const char* name : {"loss", "val_loss"}) {
      const auto first = metrics(one, name), second = metrics(other, name);
      ASSERT_EQ(first.size(), second.size()) << name;
      for (std::size_t i = 0; i < first.size(); ++i) {
        const double expected = first[i][name];
        EXPECT_NEAR(second[i][name].get<double>(), expected, 1e-5 * expected) << name << ", " << i;
      }
    }
    EXPECT_EQ(metrics(one, "loss").size(), count);
  }

  std::string state(const std::string& run) const {
    return read_text_file(directory_ / run / "last" / "model.safetensors");
  }

  TemporaryDirectory directory_;
  // Batches that three processes share unequally, with dropout, and gradients that are clipped.
  std::string sizes_ =
      "--set layers=2 --set channels=32 --set heads=2 --set context=32 --set sequence_length=24 "
      "--set steps=12 --set batch_size=5 --set accumulation=2 --set evaluate_every=4 "
      "--set evaluation_batches=3 --set checkpoint_every=6 --set sample_every=0 --set dropout=0.2 "
      "--set precision=f32 --set warmup_steps=2 --set vocabulary_size=300 ";
  std::string settings_ = "--config shakespeare-char-cpu " + sizes_;
};

TEST_F(Processes, TrainWhatOneProcessTrains) {
  ASSERT_EQ(train(1, "one", "").status, 0);
  for (const int count : {2, 3}) {
    const std::string run = "by" + std::to_string(count);
    const Outcome outcome = train(count, run, "");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("in " + std::to_string(count) + " processes"));
    expect_same_losses("one", run, 12);
    for (const Json& line : metrics(run, "loss")) {
      EXPECT_GT(line["communication"].get<double>(), 0);
      EXPECT_LT(line["slowest_process"].get<int>(), count);
    }
  }
  // Parts of gradients that others own are there when their norms are written.
  const auto one = metrics("one", "gradient_norms"), three = metrics("by3", "gradient_norms");
  ASSERT_EQ(one.size(), 3U);
  ASSERT_EQ(three.size(), 3U);
  for (std::size_t i = 0; i < one.size(); ++i) {
    for (const auto& [part, norm] : one[i]["gradient_norms"].items()) {
      const double expected = norm;
      EXPECT_NEAR(three[i]["gradient_norms"][part].get<double>(), expected, 1e-4 * expected)
          << part;
    }
  }
}

// Gradients and parameters in parts, where exchanges go on while processes compute.
TEST_F(Processes, TrainTheSameInEveryStage) {
  const std::string sampled = "--set channels=64 --set sample_every=6 --set sample_tokens=4 ";
  ASSERT_EQ(train(1, "one", sampled).status, 0);
  for (const int stage : {2, 3}) {
    const std::string run = "stage" + std::to_string(stage);
    const Outcome outcome = train(3, run, sampled + "--set shard=" + std::to_string(stage));
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    expect_same_losses("one", run, 12);
    EXPECT_EQ(metrics("one", "sample").size(), metrics(run, "sample").size());
  }
}

TEST_F(Processes, RepeatToTheBit) {
  for (const char* shard : {"", "--set shard=3 --set wire=bf16"}) {
    const std::string first = std::string("first") + (*shard == 0 ? "" : "-sharded");
    const std::string second = std::string("second") + (*shard == 0 ? "" : "-sharded");
    ASSERT_EQ(train(3, first, shard).status, 0);
    ASSERT_EQ(train(3, second, shard).status, 0);
    EXPECT_EQ(state(first), state(second));
  }
  ASSERT_EQ(train(3, "other", "--seed 4").status, 0);
  EXPECT_NE(state("first"), state("other"));
}

// 14 million parameters, 227 MB with gradients and moments, in processes that may have 190 MB each.
TEST_F(Processes, TrainWhatDoesNotFitInOne) {
  if (testing::is_sanitized) GTEST_SKIP() << "the sanitizer takes more memory than the limit";
  const auto limited = [&](const std::string& launcher, const std::string& out,
                           const std::string& more) {
    return run_heed("train --data " + path("text.txt") + " --out " + path(out) + " " + settings_ +
                        "--set layers=8 --set channels=384 --set heads=4 --set steps=2 "
                        "--set batch_size=4 --set accumulation=1 --set evaluate_every=0 " +
                        more,
                    launcher + " sh -c 'ulimit -d 190000; exec \"$0\" \"$@\"'");
  };
  const Outcome one = limited("HEED_THREADS=1", "one", "");
  EXPECT_NE(one.status, 0);
  EXPECT_THAT(one.err, HasSubstr("of memory"));
  const Outcome four = limited(mpirun(4), "four", "--set shard=3");
  ASSERT_EQ(four.status, 0) << four.err;
  EXPECT_EQ(metrics("four", "loss").size(), 2U);
}

TEST_F(Processes, TrainTranslatorsToo) {
  std::string source, target;
  for (unsigned i = 0; i < 200; ++i) {
    const std::string words[] = {"one", "two", "three", "four"};
    for (unsigned word = 0; word <= i % 5; ++word) {
      const unsigned which = (i * 2654435761U >> (7 + 3 * word)) % 4;
      source += words[which] + " ";
      target += words[3 - which] + " ";
    }
    source.back() = target.back() = '\n';
  }
  write_text_file(directory_ / "source", source);
  write_text_file(directory_ / "target", target);
  const std::string settings =
      "--pairs " + path("source") + " " + path("target") +
      " --config translator-tiny --set channels=16 --set steps=12 --set batch_tokens=40 "
      "--set vocabulary_size=300 --set evaluate_every=6 --set precision=f32 --set measure=none";
  const Outcome one = train(1, settings + " --out " + path("one"));
  ASSERT_EQ(one.status, 0) << one.err;
  const Outcome two = train(2, settings + " --set shard=3 --out " + path("two"));
  ASSERT_EQ(two.status, 0) << two.err;
  expect_same_losses("one", "two", 12);
}

// One of the processes, by what it was started with.
pid_t process_with(const std::string& argument) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.starts_with(HEED_BINARY) && line.find(argument) != std::string::npos) {
      return static_cast<pid_t>(std::stoi(name));
    }
  }
  return 0;
}

// A request to one process stops all, after a step that all have done.
TEST_F(Processes, AreResumedByAnotherNumber) {
  const std::string longer = "--set steps=400 --set evaluate_every=0 --set checkpoint_every=0";
  ASSERT_EQ(train(1, "one", longer).status, 0);
  Outcome outcome;
  std::thread running([&] { outcome = train(3, "parts", longer); });
  const auto steps_done = [&] {
    const auto file = directory_ / "parts" / "metrics.jsonl";
    return std::filesystem::exists(file) ? metrics("parts", "loss").size() : 0;
  };
  const bool has_begun = testing::becomes_true([&] { return steps_done() >= 5; });
  const pid_t process = process_with((directory_ / "parts").string());
  if (process > 0) kill(process, SIGTERM);
  running.join();
  ASSERT_TRUE(has_begun) << outcome.err;
  ASSERT_GT(process, 0);
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("everything is saved"));
  const std::size_t stopped_at = steps_done();
  ASSERT_LT(stopped_at, 400U);
  const Outcome resumed = train(2, "--out " + path("parts") + " --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  expect_same_losses("one", "parts", 400);
}

TEST_F(Processes, TrainMaskedModelsToo) {
  const std::string masked = "--config shakespeare-masked " + sizes_;
  const std::string data = "--data " + path("text.txt");
  const Outcome one = train(1, data + " --out " + path("one") + " " + masked);
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(train(2, data + " --out " + path("two") + " " + masked).status, 0);
  expect_same_losses("one", "two", 12);
}

// Sequences that two or three processes share, also beside others; evaluated together.
TEST_F(Processes, ShareSequences) {
  ASSERT_EQ(train(1, "one", "").status, 0);
  struct Case {
    int count;
    const char* settings;
  };
  for (const Case& test :
       {Case{2, "--set sequence_parallel=2"}, Case{3, "--set sequence_parallel=3"},
        Case{4, "--set sequence_parallel=2 --set shard=3"}}) {
    const std::string run = "by" + std::to_string(test.count);
    const Outcome outcome = train(test.count, run, test.settings);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    expect_same_losses("one", run, 12);
  }
}

TEST_F(Processes, ShareSequencesToTheBitAndGoOnWithout) {
  const std::string longer = " --set average_checkpoints=2";
  ASSERT_EQ(train(1, "one", longer).status, 0);
  const std::string shared = "--set sequence_parallel=2" + longer;
  const Outcome first = train(2, "first", shared);
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(train(2, "second", shared).status, 0);
  EXPECT_EQ(state("first"), state("second"));
  expect_same_losses("one", "first", 12);

  const Outcome alone = train(1, "--out " + path("first") + " --resume");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("sequence_parallel is 2, but 1 process trains"));
  const Outcome whole = train(1, "--out " + path("first") + " --resume --set sequence_parallel=1");
  EXPECT_EQ(whole.status, 0) << whole.err;
}

TEST_F(Processes, ShareSequencesOfMaskedModels) {
  const std::string masked = "--config shakespeare-masked " + sizes_;
  const std::string data = "--data " + path("text.txt");
  ASSERT_EQ(train(1, data + " --out " + path("one") + " " + masked).status, 0);
  const Outcome two =
      train(2, data + " --out " + path("two") + " " + masked + "--set sequence_parallel=2");
  ASSERT_EQ(two.status, 0) << two.err;
  expect_same_losses("one", "two", 12);
}

// How often `part` stands in `text`.
int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

TEST_F(Processes, SayOnceWhatIsWrong) {
  const Outcome many = train(3, "many", "--set batch_size=2");
  EXPECT_EQ(many.status, 2);
  EXPECT_EQ(occurrences(many.err, "heed: 3 processes cannot share a batch of 2"), 1) << many.err;

  const Outcome uneven = train(2, "uneven", "--set sequence_parallel=2 --set sequence_length=22");
  EXPECT_EQ(uneven.status, 2);
  EXPECT_EQ(occurrences(uneven.err, "2 processes cannot share a sequence of 22 tokens"), 1)
      << uneven.err;
  const Outcome left_over = train(3, "left_over", "--set sequence_parallel=2");
  EXPECT_EQ(left_over.status, 2);
  EXPECT_EQ(occurrences(left_over.err, "sequence_parallel is 2, but 3 processes train"), 1)
      << left_over.err;

  const Outcome missing = train(2, "--data " + path("nothing.txt") + " --out " + path("run"));
  EXPECT_NE(missing.status, 0);
  EXPECT_EQ(occurrences(missing.err, "nothing.txt"), 1) << missing.err;

  ASSERT_EQ(train(1, "there", "").status, 0);
  const Outcome again = train(2, "there", "");
  EXPECT_NE(again.status, 0);
  EXPECT_EQ(occurrences(again.err, "already holds a run"), 1) << again.err;

  const Outcome diverged = train(2, "diverged", "--set learning_rate=1e30 --set clip=0");
  EXPECT_NE(diverged.status, 0);
  EXPECT_EQ(occurrences(diverged.err, "became"), 1) << diverged.err;
  EXPECT_THAT(diverged.err, HasSubstr("is intact"));
}

TEST_F(Processes, HaveToTrainTheSame) {
  const Outcome outcome =
      run_heed("train --data " + path("text.txt") + " --out " + path("run") + " " + settings_,
               mpirun(2) + " sh -c 'exec \"$0\" \"$@\" --seed $((OMPI_COMM_WORLD_RANK + 3))'");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(occurrences(outcome.err, "process 1 differs from process 0 in seed: 4 instead of 3"), 1)
      << outcome.err;
}

// Each of their commands, and what each finds there.
TEST_F(Processes, HaveToBeStartedAlike) {
  const std::string common = "train --data " + path("text.txt") + " " + settings_;
  const auto out = [&](const char* name) {
    return " --out \"" + (directory_ / name).string() + "\"";
  };
  const auto as_second = [&](const std::string& second) {
    const std::string shell = " sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then set -- \"$@\"" +
                              second + "; else set -- \"$@\"" + out("run") +
                              "; fi; exec \"$0\" \"$@\"'";
    return run_heed(common, mpirun(2) + shell);
  };
  write_text_file(directory_ / "other.txt", small_text() + small_text());
  const std::pair<std::string, std::string> cases[] = {
      {out("elsewhere"), "process 1 differs from process 0 in run directory"},
      {out("run") + " --set layers=1",
       "process 1 differs from process 0 in layers: 1 instead of 2"},
      {out("run") + " --data \"" + (directory_ / "other.txt").string() + "\"",
       "process 1 differs from process 0 in text"},
      {out("run") + " --wrong", "--wrong"}};
  for (const auto& [change, message] : cases) {
    const Outcome outcome = as_second(change);
    EXPECT_NE(outcome.status, 0) << change;
    EXPECT_EQ(occurrences(outcome.err, "heed: "), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message));
  }
  const Outcome wrong = run_heed(common + " --out " + path("run") + " --wrong", mpirun(3));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(occurrences(wrong.err, "--wrong"), 1) << wrong.err;
}

TEST_F(Processes, NameAShardThatIsMissingOrOfAnotherRun) {
  ASSERT_EQ(train(3, "run", "").status, 0);
  ASSERT_EQ(train(3, "other", "--seed 4").status, 0);
  const std::string shard = "last/training_state/00000012-2-of-3.safetensors";
  const auto expect_refused = [&](const std::string& message) {
    const Outcome outcome = train(2, "--out " + path("run") + " --resume");
    EXPECT_NE(outcome.status, 0);
    EXPECT_EQ(occurrences(outcome.err, "heed: "), 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("00000012-2-of-3.safetensors"));
    EXPECT_THAT(outcome.err, HasSubstr(message));
  };
  std::filesystem::remove(directory_ / "run" / shard);
  expect_refused("is missing");
  std::filesystem::copy_file(directory_ / "other" / shard, directory_ / "run" / shard);
  expect_refused("of another run");
}

// Every command reads the last checkpoint of several processes as a model.
TEST_F(Processes, LeaveAModelDirectory) {
  ASSERT_EQ(train(3, "run", "").status, 0);
  const Outcome text =
      run_heed("generate -m " + path("run") + " -n 4 -p 'the cat '", "HEED_THREADS=1");
  EXPECT_EQ(text.status, 0) << text.err;
  const Outcome model =
      run_heed("convert " + path("run/last") + " --dtype f32 --out " + path("model"), "");
  EXPECT_EQ(model.status, 0) << model.err;
  EXPECT_EQ(read_text_file(directory_ / "model" / "model.safetensors"), state("run"));
}

// Where the library is missing, processes would all do the same work.
TEST(ProcessesAlone, RefuseToBeSeveralWithoutTheLibrary) {
  const TemporaryDirectory directory;
  const std::filesystem::path program = directory / "heed";
  std::filesystem::copy_file(HEED_BINARY, program);
  const Outcome outcome = run_heed(
      "train --data /dev/null --out /nowhere/run",
      "OMPI_COMM_WORLD_SIZE=2 '" + program.string() + "' train --data x --out y; exit $?;");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err,
            "heed: this process was started as one of 2, but this heed was built without MPI: all "
            "would do the same work; start heed without mpirun, or build it where MPI is found\n");
}

}  // namespace
}  // namespace heed
