// What traces, their interventions and running generations hold stays within the budget, and what
// two clients do to one trace.
#include <gtest/gtest.h>

#include <thread>

#include "server/explorer/trace_store.h"
#include "server/explorer_support.h"
#include "support/process.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using testing::TestExplorer;

constexpr std::int64_t positions = 60;

LoadedModel small_model() {
  constexpr std::int64_t vocabulary = 40;
  return {.name = "small", .transformer = heed::testing::small_gpt(vocabulary)};
}

std::int64_t bytes_of_one() {
  return TraceStore::bytes_needed(small_model().transformer.architecture(), positions);
}

Json text_of(int token) { return std::vector<int>(static_cast<std::size_t>(positions), token); }

class ExplorerMemory : public ::testing::Test {
 protected:
  Json trace(int token, const Json& interventions = Json::array(), int status = 200) {
    Json body{{"tokens", text_of(token)}};
    if (!interventions.empty()) body["interventions"] = interventions;
    return explorer_.post("/api/traces", body, status);
  }
  std::int64_t held() { return explorer_.get("/api/status")["trace_bytes"]; }

  // Swaps of rows at different positions, which share nothing.
  static Json swaps(const std::string& from, int count) {
    Json list = Json::array();
    for (int i = 0; i < count; ++i) {
      list.push_back({{"kind", "swap"},
                      {"point", "blocks.1.mlp.hook_post"},
                      {"positions", fmt::format("{}-59", i)},
                      {"from", from}});
    }
    return list;
  }

  TestExplorer explorer_{small_model(), {.trace_budget = 6 * bytes_of_one()}};
};

TEST_F(ExplorerMemory, CountsWhatInterventionsHold) {
  const Json plain = trace(1);
  EXPECT_EQ(plain["bytes"], bytes_of_one());
  const StackSpecification config = explorer_.model().transformer.specification();
  const std::int64_t row = config.feed_forward() * 4;
  const Json swapped = trace(2, swaps(plain["id"], 10));
  EXPECT_GE(swapped["bytes"], bytes_of_one() + 10 * positions * row);
  const std::int64_t plane = config.heads() * positions * positions * 4;
  Json frozen = Json::array();
  for (int i = 0; i < 20; ++i) frozen.push_back({{"kind", "freeze"}, {"from", plain["id"]}});
  const Json shared = trace(2, frozen);
  EXPECT_GE(shared["bytes"], bytes_of_one() + config.layers * plane);
  EXPECT_LT(shared["bytes"], bytes_of_one() + 2 * config.layers * plane) << "one copy for all";
  EXPECT_EQ(held(), plain["bytes"].get<std::int64_t>() + swapped["bytes"].get<std::int64_t>() +
                        shared["bytes"].get<std::int64_t>());
}

// A document of a list takes more than a hundred bytes an edge, its text and the edits 32.
TEST_F(ExplorerMemory, HoldsListsAsText) {
  Json edges = Json::array();
  for (int query = 0; query < positions; ++query) {
    for (int key = 0; key <= query; ++key) edges.push_back({query, key});
  }
  Json cuts = Json::array();
  for (int head = 0; head < 3; ++head) {
    cuts.push_back({{"kind", "cut"}, {"layer", 0}, {"head", head}, {"edges", edges}});
  }
  const Json made = trace(1, cuts);
  const std::int64_t held_by_edges = made["bytes"].get<std::int64_t>() - bytes_of_one();
  EXPECT_GE(held_by_edges, 3 * std::ssize(edges) * 24);
  EXPECT_LE(held_by_edges, 3 * std::ssize(edges) * 36);
  EXPECT_EQ(made["interventions"], cuts);
  const std::string id = made["id"];
  EXPECT_EQ(explorer_.get("/api/traces/" + id)["interventions"], cuts);
  EXPECT_EQ(explorer_.get("/api/traces")["traces"][0]["interventions"], cuts);
  EXPECT_EQ(explorer_.get("/api/status")["traces"][0]["interventions"], cuts);
}

// What a request takes while it is read counts before it is read.
TEST_F(ExplorerMemory, RequestsInProgressAreCounted) {
  std::string body = R"({"tokens":[1],"ignored":[)";
  while (body.size() < static_cast<std::size_t>(bytes_of_one())) body += "[],";
  body += "0]}";
  EXPECT_EQ(explorer_.send("POST", "/api/traces", body).status, 413);
  EXPECT_EQ(explorer_.send("POST", "/api/generate", body).status, 413);
  EXPECT_EQ(held(), 0);
}

TEST_F(ExplorerMemory, StaysWithinItsBudget) {
  const std::int64_t budget = 6 * bytes_of_one();
  for (int i = 0; i < 200; ++i) {
    const std::string from = trace(1)["id"];
    const Reply reply = explorer_.send(
        "POST", "/api/traces",
        Json{{"tokens", text_of(2)}, {"interventions", swaps(from, 1 + i % 60)}}.dump());
    // Beside the trace that it names, a request may have too little room.
    ASSERT_TRUE(reply.status == 200 || reply.status == 413 || reply.status == 429) << reply.body;
    ASSERT_LE(held(), budget);
  }
  EXPECT_GT(held(), bytes_of_one());
  const std::string from = trace(1)["id"];
  Json many = Json::array();
  for (int i = 0; i < 5; ++i) {
    for (const Json& each : swaps(from, 50)) many.push_back(each);
  }
  const Reply refused = explorer_.send(
      "POST", "/api/traces", Json{{"tokens", text_of(2)}, {"interventions", many}}.dump());
  EXPECT_TRUE(refused.status == 413 || refused.status == 429) << refused.body;
  EXPECT_NE(refused.body.find("--trace-budget"), std::string::npos) << refused.body;
  explorer_.get("/api/traces/" + from);
  EXPECT_LE(held(), budget);
}

TEST_F(ExplorerMemory, TracesThatARequestNamesStayUntilItIsDone) {
  const std::string from = trace(1)["id"];
  for (int i = 0; i < 5; ++i) trace(2);
  // Room is made of the others.
  const Json changed = trace(3, swaps(from, 20));
  EXPECT_EQ(changed["interventions"].size(), 20U);
  EXPECT_LE(held(), 6 * bytes_of_one());
}

TEST_F(ExplorerMemory, TooManyInterventionsAreRefused) {
  Json many = Json::array();
  for (int i = 0; i < 257; ++i) many.push_back({{"kind", "ablate"}, {"point", "L0"}});
  const std::string message = explorer_.refusal(
      "POST", "/api/traces", 400, Json{{"tokens", text_of(2)}, {"interventions", many}}.dump());
  EXPECT_NE(message.find("257 interventions"), std::string::npos) << message;
}

TEST_F(ExplorerMemory, RunningGenerationsAreCounted) {
  const std::string body = Json{{"tokens", text_of(1)}, {"max_new_tokens", 4}}.dump();
  std::vector<Reply> running;
  int status = 200;
  while (status == 200 && running.size() < 1000) {
    running.push_back(explorer_.send("POST", "/api/generate", body));
    status = running.back().status;
  }
  EXPECT_EQ(status, 429);
  EXPECT_LE(held(), 6 * bytes_of_one());
  running.clear();
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(explorer_.send("POST", "/api/generate", body).status, 200);
}

TEST_F(ExplorerMemory, MapsAreForgottenBeforeTracesOutgrowTheBudget) {
  const std::string from = trace(1)["id"];
  const std::string changed = trace(2, Json::array({{{"kind", "freeze"}, {"from", from}}}))["id"];
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* values : {"pattern", "scores"}) {
      for (const std::string& id : {from, changed}) {
        explorer_.send("GET",
                       fmt::format("/api/traces/{}/attention/self/{}/0/tiles/0/0/0?values={}", id,
                                   layer, values));
        EXPECT_LE(explorer_.get("/api/traces/" + id)["bytes"], held());
      }
    }
  }
  for (int i = 0; i < 6; ++i) trace(3);
  EXPECT_LE(held(), 6 * bytes_of_one());
}

// Handlers take turns, so every client sees a whole trace, or that it is gone.
TEST_F(ExplorerMemory, TwoClientsMayChangeOneTrace) {
  std::atomic<int> unexpected{0};
  const auto client = [&](int seed) {
    for (int i = 0; i < 60; ++i) {
      const std::string base = fmt::format("t{}", 1 + (i * 7 + seed) % 20);
      const Json body{{"base", base}, {"interventions", swaps(base, 1 + i % 3)}};
      for (const Reply& reply :
           {explorer_.send("POST", "/api/traces", Json{{"tokens", text_of(i % 9)}}.dump()),
            explorer_.send("POST", "/api/traces", body.dump()),
            explorer_.send("GET", "/api/traces/" + base + "/heads"),
            explorer_.send("GET", "/api/traces/" + base + "/attention/self/1/0/tiles/0/0/0"),
            explorer_.send(i % 3 == 0 ? "DELETE" : "GET", "/api/traces/" + base)}) {
        if (reply.status != 200 && reply.status != 404) ++unexpected;
      }
    }
  };
  std::thread other(client, 3);
  client(11);
  other.join();
  EXPECT_EQ(unexpected, 0);
  EXPECT_LE(held(), 6 * bytes_of_one());
}

}  // namespace
}  // namespace heed::server
