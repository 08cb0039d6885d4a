// Training in the server.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/files.h"
#include "base/temporary_directory.h"
#include "server/explorer_support.h"
#include "train/optimizer.h"
#include "train/run_directory.h"

namespace heed::server {
namespace {

using heed::testing::TemporaryDirectory;
using testing::TestExplorer;

constexpr const char* training_path = "/api/training";

// A step takes some milliseconds.
Json tiny(std::int64_t steps) {
  return {{"layers", 1},   {"heads", 1},      {"width", 16},
          {"context", 32}, {"batch_size", 2}, {"steps", steps}};
}

class ExplorerTraining : public ::testing::Test {
 protected:
  std::filesystem::path runs() const { return directory_ / "live"; }
  TestExplorer& explorer() {
    if (!explorer_) {
      explorer_ = std::make_unique<TestExplorer>(load_model("starter"),
                                                 ExplorerOptions{.live_runs = runs()});
    }
    return *explorer_;
  }
  Json act(const std::string& action, int status = 200) {
    return explorer().post(std::string(training_path) + "/" + action, Json::object(), status);
  }

  // The state once `reached` holds; the test fails where it never does.
  template <class Condition>
  Json wait_until(Condition&& reached) {
    for (int look = 0; look < 6000; ++look) {
      const Json state = explorer().get(training_path);
      if (reached(state)) return state;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << explorer().get(training_path);
    return explorer().get(training_path);
  }
  Json wait_for(const std::string& name) {
    return wait_until([&](const Json& state) { return state["state"].get<std::string>() == name; });
  }
  Json wait_for_step(std::int64_t step) {
    return wait_until([&](const Json& state) { return state["step"].get<std::int64_t>() >= step; });
  }

  // The state once the step that was being made when the run was paused is done.
  Json wait_until_still() {
    std::int64_t last = -1;
    return wait_until([&](const Json& state) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const std::int64_t before = std::exchange(last, state["step"].get<std::int64_t>());
      return before == last;
    });
  }

  TemporaryDirectory directory_;
  std::unique_ptr<TestExplorer> explorer_;
};

TEST_F(ExplorerTraining, IsARunLikeOthersFromItsBeginningToItsEnd) {
  EXPECT_EQ(explorer().get(training_path)["state"], "none");
  const Json begun = explorer().post(training_path, {{"settings", tiny(40)}}, 201);
  EXPECT_EQ(begun["steps"], 40);
  const Json ended = wait_for("finished");
  EXPECT_EQ(ended["run"], "live-1");
  EXPECT_EQ(ended["step"], 40);

  const Json run = explorer().get("/api/runs")["runs"][0];
  EXPECT_EQ(run["name"], "live-1");
  EXPECT_EQ(run["origin"], "live");
  EXPECT_FALSE(run["live"].get<bool>());
  EXPECT_GE(run["checkpoints"].size(), 10U);
  EXPECT_GT(run["entropy_per_token"].get<double>(), 0);
  const Json rows = explorer().get("/api/runs/live-1/metrics")["rows"];
  bool has_sample = false, has_evaluation = false, has_gradients = false;
  for (const Json& row : rows) {
    has_sample |= row.contains("sample");
    has_evaluation |= row.contains("val_loss");
    has_gradients |= row.contains("gradient_norms");
  }
  EXPECT_TRUE(has_sample && has_evaluation && has_gradients);
  // Its checkpoints can be traced, and the next run has another name.
  explorer().post("/api/traces",
                  {{"text", "the mole"}, {"model", {{"run", "live-1"}, {"step", 0}}}});
  explorer().post(training_path, {{"settings", tiny(10)}}, 201);
  EXPECT_EQ(wait_for("finished")["run"], "live-2");
}

TEST_F(ExplorerTraining, PausesAndGoesOn) {
  explorer().post(training_path, {{"settings", tiny(20'000)}}, 201);
  wait_for_step(3);
  EXPECT_EQ(act("pause")["state"], "paused");
  const Json first = wait_until_still();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(explorer().get(training_path)["step"], first["step"]);
  EXPECT_EQ(act("resume")["state"], "running");
  wait_for_step(first["step"].get<std::int64_t>() + 3);
}

TEST_F(ExplorerTraining, ChangesItsLearningRate) {
  Json settings = tiny(20'000);
  settings["learning_rate"] = 0.001;
  explorer().post(training_path, {{"settings", settings}}, 201);
  wait_for_step(2);
  act("pause");
  EXPECT_EQ(explorer().post(std::string(training_path) + "/learning_rate",
                            {{"factor", 0.25}})["learning_rate_factor"],
            0.25);
  const Json before = wait_until_still();
  act("resume");
  wait_for_step(before["step"].get<std::int64_t>() + 3);
  act("stop");
  wait_for("stopped");
  const Json rows = explorer().get("/api/runs/live-1/metrics")["rows"];
  const TrainSettings recorded = RunDirectory(runs() / "live-1").read_record().settings;
  const std::int64_t changed = before["step"].get<std::int64_t>() + 2;
  int seen = 0;
  for (const Json& row : rows) {
    if (!row.contains("learning_rate")) continue;
    const auto step = row["step"].get<std::int64_t>();
    if (step != 1 && step != changed) continue;
    const double factor = step == 1 ? 1 : 0.25;
    EXPECT_NEAR(row["learning_rate"].get<double>(), factor * learning_rate_at(recorded, step - 1),
                1e-9);
    ++seen;
  }
  EXPECT_EQ(seen, 2);
  for (const char* wrong : {R"({"factor":0})", R"({"factor":11})", R"({})", R"({"rate":1})"}) {
    explorer().refusal("POST", std::string(training_path) + "/learning_rate", 400, wrong);
  }
}

TEST_F(ExplorerTraining, OnlyOneRunAtATime) {
  explorer().post(training_path, {{"settings", tiny(20'000)}}, 201);
  wait_for_step(1);
  EXPECT_NE(explorer().refusal("POST", training_path, 409, "{}").find("live-1"), std::string::npos);
  act("stop");
  wait_for("stopped");
  for (const char* action : {"pause", "resume", "stop"}) {
    act(action, 409);
    explorer().refusal("POST", std::string(training_path) + "/" + action, 400, R"({"now":true})");
  }
}

TEST_F(ExplorerTraining, OthersAreAnsweredMeanwhile) {
  explorer().post(training_path, {{"settings", tiny(20'000)}}, 201);
  wait_for_step(1);
  for (int i = 0; i < 5; ++i) explorer().trace("the mole");
  EXPECT_EQ(explorer().get(training_path)["state"], "running");
}

TEST_F(ExplorerTraining, ALeavingServerSavesTheRun) {
  explorer().post(training_path, {{"settings", tiny(20'000)}}, 201);
  wait_for_step(2);
  explorer_.reset();
  const RunDirectory left(runs() / "live-1");
  EXPECT_TRUE(std::filesystem::exists(left.state_file()));
  EXPECT_FALSE(left.is_finished());
  // The next server shows it.
  EXPECT_EQ(explorer().get("/api/runs")["runs"][0]["origin"], "live");
  EXPECT_EQ(explorer().get(training_path)["state"], "none");
}

TEST_F(ExplorerTraining, AUsersText) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "ab cd " + std::to_string(i) + "\n";
  explorer().post(training_path, {{"text", text}, {"settings", tiny(10)}}, 201);
  wait_for("finished");
  const Json run = explorer().get("/api/runs")["runs"][0];
  EXPECT_EQ(run["settings"]["tokenizer"], "char");
  EXPECT_TRUE(run["entropy_per_token"].is_null());
}

TEST_F(ExplorerTraining, RefusesWhatCannotBeTrainedAndLeavesNothing) {
  for (const char* wrong :
       {R"({"text":""})", R"({"text":"ab"})", R"({"preset":"none"})", R"({"tokenizer":"char"})",
        R"({"text":"ab","tokenizer":"words"})", R"({"settings":{"layers":0}})",
        R"({"settings":{"layers":9}})", R"({"settings":{"width":17,"heads":4}})",
        R"({"settings":{"steps":1.5}})", R"({"settings":{"learning_rate":"fast"}})",
        R"({"setting":{}})", R"([])",
        R"({"settings":{"layers":8,"width":256,"context":512,"batch_size":64,"steps":20000}})"}) {
    const std::string message = explorer().refusal("POST", training_path, 400, wrong);
    EXPECT_EQ(message.find(directory_.path().string()), std::string::npos) << message;
  }
  EXPECT_TRUE(!std::filesystem::exists(runs()) || std::filesystem::is_empty(runs()));
}

TEST_F(ExplorerTraining, IsRefusedWhereItIsNotAllowed) {
  TestExplorer closed(load_model("starter"), {.live_runs = runs(), .why_no_training = "not here"});
  EXPECT_FALSE(closed.get(training_path)["allowed"].get<bool>());
  EXPECT_EQ(closed.refusal("POST", training_path, 403, "{}"), "not here");
  TestExplorer homeless(load_model("starter"));
  EXPECT_FALSE(homeless.get(training_path)["allowed"].get<bool>());
  homeless.refusal("POST", training_path, 403, "{}");
}

}  // namespace
}  // namespace heed::server
