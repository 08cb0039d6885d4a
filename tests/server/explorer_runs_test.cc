// Training runs behind the explorer: what they were, are, and were at every checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/directories.h"
#include "base/expect_error.h"
#include "base/files.h"
#include "base/temporary_directory.h"
#include "server/explorer/runs.h"
#include "server/explorer_support.h"
#include "support/small_model.h"
#include "train/run_directory.h"

namespace heed::server {
namespace {

using heed::testing::expect_error;
using heed::testing::TemporaryDirectory;
using testing::TestExplorer;

class ExplorerRuns : public ::testing::Test {
 protected:
  ExplorerRuns() { testing::train_small_run(directory_); }

  TemporaryDirectory directory_;
};

TEST_F(ExplorerRuns, AreListedWithTheirCheckpoints) {
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {directory_ / "small"}});
  const Json run = explorer.get("/api/runs")["runs"][0];
  EXPECT_EQ(run["name"], "small");
  EXPECT_EQ(run["path_shown"], "small");  // not where it lies
  EXPECT_EQ(run["step"], 6);
  EXPECT_EQ(run["steps_total"], 6);
  EXPECT_EQ(run["live"], false);
  EXPECT_EQ(run["checkpoints"], Json({0, 3, 6}));
  EXPECT_EQ(run["settings"]["keep_every"], 3);
  EXPECT_EQ(explorer.get("/api/model")["runs"], Json({"small"}));

  const Json rows = explorer.get("/api/runs/small/metrics?from=5")["rows"];
  ASSERT_FALSE(rows.empty());
  for (const Json& row : rows) EXPECT_GE(row["step"], 5);

  const auto trace_at = [&](int step) {
    return explorer.post("/api/traces",
                         {{"text", "the fox"}, {"model", {{"run", "small"}, {"step", step}}}});
  };
  const Json untrained = trace_at(0);
  const Json trained = trace_at(6);
  EXPECT_EQ(trained["model"]["step"], 6);
  EXPECT_EQ(trained["dimensions"]["channels"], 16);
  const auto stream = [&](const Json& trace) {
    return explorer.array("/api/traces/" + trace["id"].get<std::string>() + "/arrays/resid_post1")
        .values;
  };
  EXPECT_NE(stream(untrained), stream(trained));
  EXPECT_THROW(explorer.send("GET", "/api/runs/..%2f/metrics"), Error);
  explorer.refusal("GET", "/api/runs/elsewhere/metrics", 404);
  EXPECT_NE(
      explorer
          .refusal("POST", "/api/traces", 404, R"({"text":"the","model":{"run":"small","step":4}})")
          .find("0, 3, 6"),
      std::string::npos);
}

TEST_F(ExplorerRuns, ADirectoryWithoutARunIsRefused) {
  expect_error(
      ErrorCode::not_found, [&] { Runs({directory_ / "text.txt"}); }, "no training run");
}

TEST_F(ExplorerRuns, SameNamesAreToldApart) {
  const Runs runs({directory_ / "small", directory_ / "small"});
  EXPECT_THAT(runs.names(), ::testing::ElementsAre("small", "small-2"));
}

// As runs of another process: of a page, the one that trains.
TEST_F(ExplorerRuns, ThatBeginLaterAreFoundAmongLiveRuns) {
  const std::filesystem::path live = directory_ / "live";
  TestExplorer explorer(
      LoadedModel{
          .name = "other", .transformer = heed::testing::small_gpt(40), .tokenizer = nullptr},
      {.live_runs = live});
  EXPECT_TRUE(explorer.get("/api/runs")["runs"].empty());
  const auto trace = [&](const char* run) {
    return explorer.post("/api/traces",
                         {{"text", "the fox"}, {"model", {{"run", run}, {"step", 3}}}});
  };
  std::filesystem::create_directories(live);
  std::filesystem::copy(directory_ / "small", live / "first",
                        std::filesystem::copy_options::recursive);
  EXPECT_EQ(trace("first")["model"]["step"], 3);  // by its name alone
  std::filesystem::copy(directory_ / "small", live / "second",
                        std::filesystem::copy_options::recursive);
  const Json runs = explorer.get("/api/runs")["runs"];
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[1]["name"], "second");
  EXPECT_EQ(runs[1]["origin"], "live");
  EXPECT_EQ(trace("second")["model"]["step"], 3);
}

// A process that trains holds the directory locked; one that was killed does not.
TEST_F(ExplorerRuns, IsLiveWhileItIsTrained) {
  const std::filesystem::path run = directory_ / "small";
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {run}});
  const auto live = [&] { return explorer.get("/api/runs")["runs"][0]["live"]; };
  std::ofstream(run / "metrics.jsonl", std::ios::app) << "{\"step\":3}\n";  // written just now
  EXPECT_EQ(live(), false);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t trainer = ::fork();
  if (trainer == 0) {
    const DirectoryLock lock(run);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(live(), true);
  ::kill(trainer, SIGKILL);
  ::waitpid(trainer, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(live(), false);
}

TEST_F(ExplorerRuns, GivesASentenceThatItsModelsCanRead) {
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {directory_ / "small"}});
  const Json run = explorer.get("/api/runs")["runs"][0];
  const Json trace = explorer.post(
      "/api/traces", {{"text", run["sentence"]}, {"model", {{"run", "small"}, {"step", 0}}}});
  EXPECT_FALSE(trace["tokens"].empty());
}

TEST_F(ExplorerRuns, FilesThatAreNoRegularFilesAreRefusedAtOnce) {
  const std::filesystem::path run = directory_ / "small";
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {run}});
  const auto replace = [&](const std::filesystem::path& file, const char* device) {
    std::filesystem::remove(file);
    if (device != nullptr) {
      std::filesystem::create_symlink(device, file);
    } else {
      ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
    }
  };
  for (const char* device : {static_cast<const char*>(nullptr), "/dev/zero"}) {
    replace(run / "metrics.jsonl", device);
    EXPECT_NE(explorer.refusal("GET", "/api/runs/small/metrics", 422).find("metrics.jsonl"),
              std::string::npos);
    explorer.refusal("GET", "/api/runs/small/events", 422);
    EXPECT_TRUE(explorer.get("/api/runs")["runs"][0].contains("error"));
  }
  std::filesystem::remove(run / "metrics.jsonl");
  EXPECT_FALSE(explorer.get("/api/runs")["runs"][0].contains("error"));
  const std::string state = "last/training_state.json";
  replace(run / state, nullptr);
  EXPECT_NE(explorer.refusal("GET", "/api/runs/small/events", 422).find(state), std::string::npos);
  replace(run / "run.json", nullptr);
  EXPECT_TRUE(explorer.get("/api/runs")["runs"][0].contains("error"));
}

TEST_F(ExplorerRuns, EventsFollowTheFile) {
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {directory_ / "small"}});
  const Reply reply = explorer.send("GET", "/api/runs/small/events");
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.content_type, "text/event-stream");
  std::ofstream(directory_ / "small" / "metrics.jsonl", std::ios::app) << "{\"step\":7}\n";
  testing::KeepingWriter writer(2);  // the greeting and one line; then the next write ends it
  std::ofstream(directory_ / "small" / "metrics.jsonl", std::ios::app) << "{\"step\":8}\n";
  write_stream(reply, writer);
  EXPECT_NE(writer.text.find("event: metrics\ndata: {\"step\":7}\n\n"), std::string::npos)
      << writer.text;
}

TEST_F(ExplorerRuns, EventsEndWithAFinishedRun) {
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {directory_ / "small"}});
  const Reply reply = explorer.send("GET", "/api/runs/small/events");
  std::ofstream(directory_ / "small" / "metrics.jsonl", std::ios::app) << "{\"step\":7}\n";
  testing::KeepingWriter writer;
  write_stream(reply, writer);  // returns by itself
  EXPECT_TRUE(
      writer.text.ends_with("data: {\"step\":7}\n\nevent: end\ndata: {\"run\":\"small\"}\n\n"))
      << writer.text;
}

// One that was stopped before its end may go on: those who watch it wait.
TEST_F(ExplorerRuns, AStoppedRunIsNotFinished) {
  const RunDirectory directory(directory_ / "small");
  EXPECT_TRUE(directory.is_finished());
  std::string record = read_text_file(directory_ / "small" / "run.json", 1 << 20);
  const std::string steps = "\"steps\": 6";
  ASSERT_NE(record.find(steps), std::string::npos) << record;
  record.replace(record.find(steps), steps.size(), "\"steps\": 60");
  write_text_file(directory_ / "small" / "run.json", record);
  EXPECT_FALSE(directory.is_finished());
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {directory_ / "small"}});
  Request request = parse_request("GET", "/api/runs/small/events");
  std::atomic<bool> stop{false};
  request.stop = &stop;
  const Reply reply = explorer.router().handle(request);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop = true;
  });
  testing::KeepingWriter writer;
  write_stream(reply, writer);
  stopper.join();
  EXPECT_EQ(writer.text, ": watching\n\n");
  std::filesystem::remove(directory.state_file());
  EXPECT_FALSE(directory.is_finished());
}

TEST_F(ExplorerRuns, ACheckpointIsNamedByItsRun) {
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {directory_ / "small"}});
  const Json trace = explorer.post(
      "/api/traces", {{"text", "the fox"}, {"model", {{"run", "small"}, {"step", 3}}}});
  EXPECT_EQ(trace["model"]["name"], "small");
  EXPECT_EQ(trace.dump().find(directory_.path().string()), std::string::npos);
}

TEST_F(ExplorerRuns, ADamagedRunHidesNoOther) {
  const std::filesystem::path damaged = directory_ / "damaged";
  std::filesystem::copy(directory_ / "small", damaged, std::filesystem::copy_options::recursive);
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {damaged, directory_ / "small"}});
  const Json whole = explorer.get("/api/runs")["runs"][1];
  EXPECT_EQ(whole["name"], "small");
  const auto expect_error_naming = [&](const std::string& file) {
    const Json runs = explorer.get("/api/runs")["runs"];
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(runs[0]["name"], "damaged");
    EXPECT_EQ(runs[0]["path_shown"], "damaged");
    EXPECT_THAT(runs[0]["error"].get<std::string>(), ::testing::HasSubstr(file));
    EXPECT_EQ(runs[0].size(), 3U);
    EXPECT_EQ(runs[1], whole);
    EXPECT_EQ(runs.dump().find(directory_.path().string()), std::string::npos) << runs;
  };
  // A line of metrics that makes no sense is passed over, as one that is no JSON is.
  std::ofstream(damaged / "metrics.jsonl", std::ios::app) << "{\"step\":\"six\"}\nnothing\n";
  EXPECT_EQ(explorer.get("/api/runs")["runs"][0]["step"], 6);
  write_text_file(damaged / "last" / "config.json", "{");
  expect_error_naming("last/config.json");
  write_text_file(damaged / "run.json", "[]");
  expect_error_naming("run.json");
  std::filesystem::remove_all(damaged);
  expect_error_naming("no run");
}

TEST_F(ExplorerRuns, DamagedFilesAreNamedWithoutWhereTheyLie) {
  const std::filesystem::path run = directory_ / "small";
  TestExplorer explorer(LoadedModel{.name = "other", .transformer = heed::testing::small_gpt(40)},
                        {.runs = {run}, .corpus = directory_ / "corpus.txt"});
  const auto refused = [&](const std::string& method, const std::string& path, int status,
                           const std::string& body, const std::string& file) {
    const std::string message = explorer.refusal(method, path, status, body);
    EXPECT_NE(message.find(file), std::string::npos) << message;
    EXPECT_EQ(message.find(directory_.path().string()), std::string::npos) << message;
  };
  const std::filesystem::path kept = run / "checkpoints" / "00000003";
  const std::string ask = R"({"text":"the","model":{"run":"small","step":3}})";
  write_text_file(kept / "model.safetensors", "no tensors here");
  refused("POST", "/api/traces", 422, ask, "checkpoints/00000003/model.safetensors");
  write_text_file(kept / "config.json", "{");
  refused("POST", "/api/traces", 422, ask, "checkpoints/00000003/config.json");
  write_text_file(run / "run.json", "[]");
  refused("GET", "/api/runs/small/events", 422, "", "run.json");
  refused("GET", "/api/neurons/0/0/contexts", 404, "", "corpus.txt");
}

}  // namespace
}  // namespace heed::server
