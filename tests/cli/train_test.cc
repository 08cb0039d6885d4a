// heed train from outside: killed, interrupted, and asked for what cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/random.h"
#include "base/temporary_directory.h"
#include "cli/run_heed.h"

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

  // Starts the program with its output thrown away.
  pid_t start(const std::vector<std::string>& arguments) const {
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
      posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", 1 /* O_WRONLY */, 0);
    }
    pid_t child = -1;
    EXPECT_EQ(posix_spawn(&child, HEED_BINARY, &actions, nullptr, argv.data(), environment.data()),
              0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }

  int wait_for(pid_t child) const {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  std::string weights(const std::string& out) const {
    return read_text_file(directory_ / out / "last" / "model.safetensors");
  }

  TemporaryDirectory directory_;
};

TEST_F(TrainCommand, KilledAnywhereAndResumedEndsInTheSameBytes) {
  ASSERT_EQ(wait_for(start(fresh("whole"))), 0);

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
    const int status = wait_for(child);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;  // it was faster
    }
    ++kills;
    begun = std::filesystem::exists(directory_ / "killed" / "run.json");
  }
  EXPECT_GT(kills, 0);
  EXPECT_EQ(weights("killed"), weights("whole"));
}

TEST_F(TrainCommand, AnInterruptSavesAndSaysHowToGoOn) {
  ASSERT_EQ(wait_for(start(fresh("whole"))), 0);
  const pid_t child = start(fresh("run"));
  // Once it has begun to step there is something to interrupt.
  while (!std::filesystem::exists(directory_ / "run" / "metrics.jsonl")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ::kill(child, SIGTERM);
  const int status = wait_for(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 0);
  ASSERT_EQ(wait_for(start(resumed("run"))), 0);
  EXPECT_EQ(weights("run"), weights("whole"));
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
  expect(out + "--resume", 1, "no run to resume");
  expect(data + out + "--from '" + path("absent") + "'", 1, "absent");
}

}  // namespace
}  // namespace heed::testing
