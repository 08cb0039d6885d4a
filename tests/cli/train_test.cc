// heed train from outside: killed, interrupted, and asked for what cannot be.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"
#include "support/child.h"

namespace heed::testing {
namespace {

using ::testing::HasSubstr;

class TrainCommand : public ::testing::Test {
 protected:
  TrainCommand() {
    std::string text;
    for (int i = 0; i < 60; ++i) text += "The quick brown fox jumps over the lazy dog, again. ";
    write_text_file(directory_ / "text.txt", text);
    write_text_file(directory_ / "settings.json",
                    R"({"channels": 32, "heads": 2, "layers": 2, "context": 16, "tokenizer": "char",
                        "dropout": 0.1, "steps": 150, "batch_size": 8, "evaluate_every": 40,
                        "checkpoint_every": 9, "sample_every": 50, "sample_tokens": 10})");
  }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::vector<std::string> fresh(const std::string& out) const {
    return {
        "train", "--data", path("text.txt"), "--config", path("settings.json"), "--out", path(out),
        "-t",    "1",      "--json"};
  }
  std::vector<std::string> resumed(const std::string& out) const {
    return {"train", "--out", path(out), "--resume", "-t", "1", "--json"};
  }

  // Starts the program with its output thrown away and its input from a file or pipe.
  pid_t start(const std::vector<std::string>& arguments,
              const std::string& input = "/dev/null") const {
    std::vector<char*> argv{const_cast<char*>("heed")};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    std::string cache = "HEED_CACHE=" + path("cache");
    std::vector<char*> environment{cache.data()};
    for (char** variable = environ; *variable != nullptr; ++variable) {
      environment.push_back(*variable);
    }
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_WRONLY, 0);
    }
    // Opened for writing, too, so that a pipe opens at once and never ends.
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input.c_str(), O_RDWR, 0);
    pid_t child = -1;
    EXPECT_EQ(posix_spawn(&child, HEED_BINARY, &actions, nullptr, argv.data(), environment.data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  // Until the file is there, which the child writes.
  void wait_for_file(const std::string& name) const {
    EXPECT_TRUE(becomes_true([&] { return std::filesystem::exists(directory_ / name); })) << name;
  }

  // Sends SIGTERM once and expects the end, by the signal where it was not caught yet.
  void expect_one_signal_ends(pid_t child) const {
    ::kill(child, SIGTERM);
    const int status = status_of(child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 130) << status;
  }

  // The lines of a run's metrics, but for what the clock says.
  std::vector<Json> metrics(const std::string& out) const {
    std::vector<Json> lines;
    std::ifstream file(directory_ / out / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      Json row = Json::parse(line);
      row.erase("tokens_per_s");
      row.erase("seconds");
      lines.push_back(std::move(row));
    }
    return lines;
  }

  std::string weights(const std::string& out) const {
    return read_text_file(directory_ / out / "last" / "model.safetensors");
  }

  TemporaryDirectory directory_;
};

TEST_F(TrainCommand, KilledAnywhereAndResumedEndsInTheSameBytes) {
  ASSERT_EQ(status_of(start(fresh("whole"))), 0);

  RandomStream random(7, 0);
  int kills = 0;
  bool begun = false;
  constexpr int attempts = 60;
  for (int attempt = 0; attempt <= attempts; ++attempt) {
    const pid_t child = start(begun ? resumed("killed") : fresh("killed"));
    if (attempt < attempts) {
      // From the first instant on: while starting, stepping and writing.
      std::this_thread::sleep_for(std::chrono::milliseconds(5 + random.below(120 + 20 * attempt)));
      ::kill(child, SIGKILL);
    }  // the last one may finish, however slow the machine is
    const int status = status_of(child);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;  // it was faster
    }
    ++kills;
    begun = std::filesystem::exists(directory_ / "killed" / "run.json");
  }
  EXPECT_GT(kills, 0);
  EXPECT_EQ(weights("killed"), weights("whole"));
  for (const char* name : {"killed", "cache"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_ / name)) {
      EXPECT_EQ(entry.path().string().find(".partial-"), std::string::npos) << entry.path();
    }
  }
}

TEST_F(TrainCommand, AnInterruptSavesAndSaysHowToGoOn) {
  ASSERT_EQ(status_of(start(fresh("whole"))), 0);
  const pid_t child = start(fresh("run"));
  // Once it has begun to step there is something to interrupt.
  wait_for_file("run/metrics.jsonl");
  ::kill(child, SIGTERM);
  const int status = status_of(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 0);
  ASSERT_EQ(status_of(start(resumed("run"))), 0);
  EXPECT_EQ(weights("run"), weights("whole"));
}

// A terminal that closes may send several SIGHUPs, and SIGTERM beside them.
TEST_F(TrainCommand, AHangUpSavesHoweverOftenItComes) {
  ASSERT_EQ(status_of(start(fresh("whole"))), 0);
  std::vector<std::string> arguments = fresh("run");
  arguments.emplace_back("--set");
  arguments.emplace_back("steps=100000");
  const pid_t child = start(arguments);
  wait_for_file("run/metrics.jsonl");
  for (const int signal : {SIGHUP, SIGHUP, SIGTERM, SIGHUP}) ::kill(child, signal);
  const int status = status_of(child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 130);
  // Every step that was finished is saved: the next one is not written again.
  const auto done = metrics("run").back()["step"].get<std::int64_t>();
  const Json state =
      Json::parse(read_text_file(directory_ / "run" / "last" / "training_state.json"));
  EXPECT_EQ(state["step"], done);
}

TEST_F(TrainCommand, ADirectoryOfAModelIsNotTrainedIn) {
  const std::string out = path("model");
  ASSERT_EQ(run_heed("convert starter --dtype f32 --out '" + out + "'").status, 0);
  const std::string train = "train --data '" + path("text.txt") + "' --config '" +
                            path("settings.json") + "' --set steps=1 -t 1 --out '" + out + "'";
  const std::string cache = "HEED_CACHE='" + path("cache") + "'";
  const std::string before = read_text_file(out + "/config.json");
  const Outcome refused = run_heed(train, cache);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("already holds a model"));
  EXPECT_THAT(refused.err, HasSubstr("--from '" + out + "'"));
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_EQ(read_text_file(out + "/config.json"), before);
  EXPECT_EQ(run_heed(train + " --force", cache).status, 0);
  EXPECT_EQ(run_heed("generate -m '" + out + "' -n 2 -p 'The '").status, 0);
}

TEST_F(TrainCommand, GoesOnFromAGgufFileAsFromADirectory) {
  const auto losses = [&](const std::string& model, const std::string& type) {
    const std::string from = path(model), out = path("run of " + model);
    const Outcome converted = run_heed("convert starter --dtype " + type + " --out '" + from + "'");
    EXPECT_EQ(converted.status, 0) << converted.err;
    const Outcome trained =
        run_heed("train --from '" + from + "' --data '" + path("text.txt") +
                     "' --set steps=2 --set batch_size=1 -t 1 --out '" + out + "'",
                 "HEED_CACHE='" + path("cache") + "'");
    EXPECT_EQ(trained.status, 0) << trained.err;
    std::vector<double> found;
    for (const Json& line : metrics("run of " + model)) {
      found.push_back(line.contains("loss") ? line["loss"] : line["val_loss"]);
    }
    return found;
  };
  const std::vector<double> whole = losses("directory", "f32");
  ASSERT_EQ(std::ssize(whole), 3);
  EXPECT_EQ(losses("file.gguf", "f32"), whole);
  // Rounded weights are restored, and trained in f32.
  const std::vector<double> rounded = losses("rounded.gguf", "q8_0");
  EXPECT_NE(rounded, whole);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(rounded[i], whole[i], 0.5);
}

TEST_F(TrainCommand, WritesItsMetricsForTensorboard) {
  const std::string run = path("run");
  const Outcome trained = run_heed("train --data '" + path("text.txt") + "' --config '" +
                                       path("settings.json") + "' --set steps=3 -t 1 --out '" +
                                       run + "' --tensorboard '" + path("events") + "'",
                                   "HEED_CACHE='" + path("cache") + "'");
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Json written = json_of("tensorboard '" + run + "' --out '" + path("later") + "' --json");
  EXPECT_GE(written["scalars"].get<std::int64_t>(), 3 * 4);
  EXPECT_EQ(read_text_file(written["file"].get<std::string>()).size(),
            read_text_file(std::filesystem::directory_iterator(path("events"))->path()).size());
  EXPECT_EQ(run_heed("tensorboard '" + path("none") + "' --out '" + path("later") + "'").status, 1);
}

// What a run measures, and which tokens end its documents, need not be said again.
TEST_F(TrainCommand, ResumesWithAllThatItBeganWith) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "The fox number " + std::to_string(i * 7 % 11) + " jumps.<|endoftext|>";
  }
  write_text_file(directory_ / "documents.txt", text);
  const auto run = [&](const std::string& out) {
    std::vector<std::string> arguments = fresh(out);
    arguments[2] = path("documents.txt");
    for (const char* more :
         {"--tokenizer", "bpe", "--measure", "induction", "--set", "windows=documents", "--set",
          "vocabulary_size=280", "--set", "evaluate_every=10", "--set", "steps=40"}) {
      arguments.emplace_back(more);
    }
    return arguments;
  };
  ASSERT_EQ(status_of(start(run("whole"))), 0);
  const pid_t child = start(run("run"));
  wait_for_file("run/metrics.jsonl");
  ::kill(child, SIGINT);
  status_of(child);
  ASSERT_EQ(status_of(start(resumed("run"))), 0);
  EXPECT_EQ(metrics("run"), metrics("whole"));
  EXPECT_EQ(weights("run"), weights("whole"));
  for (const char* file : {"last/config.json", "best/config.json", "last/tokenizer.json"}) {
    EXPECT_EQ(read_text_file(directory_ / "run" / file),
              read_text_file(directory_ / "whole" / file))
        << file;
  }
  EXPECT_TRUE(
      Json::parse(read_text_file(directory_ / "run" / "last" / "config.json"))["eos_token_id"]
          .is_number());
}

// A stop is seen inside the first step, which takes seconds.
TEST_F(TrainCommand, OneSignalStopsALongStep) {
  std::vector<std::string> arguments = fresh("run");
  for (const char* setting : {"batch_size=2048", "layers=1", "channels=128", "steps=2",
                              "evaluate_every=0", "sample_every=0"}) {
    arguments.emplace_back("--set");
    arguments.emplace_back(setting);
  }
  const pid_t child = start(arguments);
  wait_for_file("run/last/training_state.json");
  expect_one_signal_ends(child);
  EXPECT_TRUE(metrics("run").empty());
}

TEST_F(TrainCommand, OneSignalEndsWhatWaitsForInput) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string model = model_directory().string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"generate", "-m", model},
                                             {"predict", "-m", model},
                                             {"tokenize", "--tokenizer", model}}) {
    const pid_t child = start(arguments, path("pipe"));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    expect_one_signal_ends(child);
  }
  const pid_t child = start({"induction", "-m", model, "-n", "100000"});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  expect_one_signal_ends(child);
}

// What has nothing to save ends by a signal, whatever it computes.
TEST_F(TrainCommand, OneSignalEndsAMeasurement) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"bench", "decode", "--config", "gpt2", "-r", "100000"}, {"plan", "gpt3"}}) {
    const pid_t child = start(arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    expect_one_signal_ends(child);
  }
}

// In every part of learning a vocabulary and of writing a model: what is there then is whole.
TEST_F(TrainCommand, ASignalLeavesNoHalfATokenizerOrModel) {
  std::string text;
  for (unsigned i = 0; i < 400'000; ++i) text += std::to_string(i * 2654435761U) + " ";
  write_text_file(directory_ / "long.txt", text);
  for (const int milliseconds : {20, 100, 300, 900}) {
    SCOPED_TRACE(milliseconds);
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"tokenizer", "train", "--data", path("long.txt"), "--out", path("tokenizer"),
              "--vocabulary-size", "200000", "--force"},
             {"convert", "starter", "--dtype", "int4", "--out", path("model"), "--force"}}) {
      const pid_t child = start(arguments);
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      ::kill(child, SIGTERM);
      const int status = status_of(child);
      EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 0);
    }
    if (std::filesystem::exists(path("tokenizer") + "/tokenizer.json")) {
      EXPECT_EQ(run_heed("tokenize --tokenizer '" + path("tokenizer") + "' 1").status, 0);
    }
    if (std::filesystem::exists(path("model") + "/config.json")) {
      EXPECT_EQ(run_heed("predict -t 1 -m '" + path("model") + "' 'The '").status, 0);
    }
  }
}

TEST_F(TrainCommand, RefusesPipesAtOnce) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string model = with_model();
  for (const std::string& arguments :
       {"train --data '" + path("pipe") + "' --out '" + path("run") + "'",
        "train --data '" + path("text.txt") + "' --config '" + path("pipe") + ".json' --out '" +
            path("run") + "'",
        "generate -f '" + path("pipe") + "' " + model,
        "eval --text '" + path("pipe") + "' " + model}) {
    if (arguments.find(".json") != std::string::npos) {
      ASSERT_EQ(::mkfifo((path("pipe") + ".json").c_str(), 0600), 0);
    }
    const Outcome outcome = run_heed(arguments, "HEED_CACHE='" + path("cache") + "'");
    EXPECT_NE(outcome.status, 0) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("not a regular file but a pipe")) << arguments;
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ / "run"));
}

TEST_F(TrainCommand, GoesOnWithoutACache) {
  const std::string train = "train --data '" + path("text.txt") + "' --config '" +
                            path("settings.json") + "' --set steps=2 -t 1 --json --out ";
  const Outcome closed = run_heed(train + "'" + path("one") + "'", "HEED_CACHE=/dev/null/cache");
  EXPECT_EQ(closed.status, 0) << closed.err;
  EXPECT_THAT(closed.err, HasSubstr("in memory"));
  const Outcome relative =
      run_heed(train + "'" + path("two") + "'",
               "cd '" + directory_.path().string() +
                   "'; unset HEED_CACHE; HOME=relative XDG_CACHE_HOME=also/relative");
  EXPECT_EQ(relative.status, 0) << relative.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "relative"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "also"));
  EXPECT_EQ(weights("one"), weights("two"));
}

// Files may grow to a few KiB only, as on a full disk.
TEST_F(TrainCommand, WorkThatFailsLeavesNoDirectory) {
  const std::string full_disk = "trap '' XFSZ; ulimit -f 16;";
  const std::string out = "'" + path("out") + "/inner'";
  const Outcome converted = run_heed("convert starter --dtype int4 --out " + out, full_disk);
  EXPECT_EQ(converted.status, 1) << converted.err;
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out"));
  for (const std::string& arguments :
       {"train --data '" + path("text.txt") + "' --config gpt2 --set heads=7 --out " + out,
        "train --data '" + path("text.txt") + "' --set steps=0 --out " + out,
        "tokenizer train --data /nowhere --out " + out,
        "convert '" + path("nothing") + "' --dtype int8 --out " + out,
        "trace text --points q --out " + out + " " + with_model()}) {
    EXPECT_NE(run_heed(arguments).status, 0) << arguments;
    EXPECT_FALSE(std::filesystem::exists(directory_ / "out")) << arguments;
  }
}

TEST_F(TrainCommand, ASmallRunNeedsNoData) {
  const std::string small = " train --config sentences --set layers=1 --set steps=2 --json --out ";
  const Outcome outcome = run_heed(small + path("small"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(parse_json(outcome.out, "summary")["steps"], 2);
  const Json record = parse_json(read_text_file(path("small") + "/run.json"), "record");
  EXPECT_GT(record["entropy_per_token"].get<double>(), 0);
  EXPECT_EQ(run_heed(small + path("small")).status, 1);  // it is there already
  EXPECT_TRUE(std::filesystem::exists(path("small") + "/text.txt"));
  // A file of the user's is kept.
  std::filesystem::create_directory(path("mine"));
  write_text_file(path("mine") + "/text.txt", "mine");
  EXPECT_THAT(run_heed(small + path("mine")).err, HasSubstr("is there already"));
  EXPECT_EQ(read_text_file(path("mine") + "/text.txt"), "mine");
  // One that does not begin leaves nothing.
  EXPECT_NE(run_heed(small + path("none") + " --set sequence_length=100000").status, 0);
  EXPECT_FALSE(std::filesystem::exists(path("none")));
}

TEST_F(TrainCommand, ReportsItsResultAsJson) {
  const Outcome outcome =
      run_heed("train --data '" + path("text.txt") + "' --config '" + path("settings.json") +
                   "' --set steps=3 --out '" + path("run") + "' -t 1 --json",
               "HEED_CACHE='" + path("cache") + "'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_EQ(json["checkpoint"], path("run") + "/last");
  for (const char* key : {"train_loss", "val_loss", "tokens_per_s", "seconds"}) {
    EXPECT_TRUE(json[key].is_number()) << key;
  }
}

TEST_F(TrainCommand, SaysWhatIsWrong) {
  const std::string out = " --out '" + path("run") + "' ";
  const std::string data = " --data '" + path("text.txt") + "' ";
  const auto expect = [&](const std::string& arguments, int status, const std::string& message) {
    const Outcome outcome = run_heed("train " + arguments, "HEED_CACHE='" + path("cache") + "'");
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
  };
  expect(out, 2, "--data");
  expect(data, 2, "--out");
  expect("--data /nowhere.txt" + out, 1, "/nowhere.txt");
  expect(data + out + "--config gpt9", 1, "gpt9");
  expect(data + out + "--set steps", 2, "name=value");
  expect(data + out + "--set stepps=3", 2, "'steps'");
  expect(data + out + "--set heads=5 --set channels=12", 2, "heads");
  expect(data + out + "--set batch_size=99999999999", 2, "batch_size");
  expect(data + out + "--seed -1", 2, "at least 0");
  expect(data + out + "--from starter", 2, "heed convert");
  expect(data + out + "--from translator", 2, "heed convert translator");
  expect(out + "--resume", 1, "no run to resume");
  expect(data + out + "--from '" + path("absent") + "'", 1, "absent");
}

}  // namespace
}  // namespace heed::testing
