// Interventions of traces and generations, and what is made of requests that cannot be.
#include <gtest/gtest.h>

#include <cmath>

#include "generate/generator.h"
#include "server/explorer/trace_store.h"
#include "server/explorer_support.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using testing::KeepingWriter;
using testing::starter_explorer;
using testing::TestExplorer;

constexpr const char* hare_sentence = "Late one evening, a fluffy blue hare";
constexpr std::int64_t hare_position = 7;  // of " hare"

class ExplorerChanges : public ::testing::Test {
 protected:
  TestExplorer& explorer_ = starter_explorer();
  std::string plain_ = explorer_.trace(hare_sentence);

  std::string changed(const char* interventions) {
    return explorer_.trace(hare_sentence, Json::parse(interventions));
  }
  TestExplorer::Array array(const std::string& id, const std::string& rest) {
    return explorer_.array("/api/traces/" + id + rest);
  }
  double divergence(const std::string& id) {
    return explorer_.get("/api/traces/" + plain_ + "/compare/" + id)["kl"].get<double>();
  }
};

TEST_F(ExplorerChanges, NothingChangesNothing) {
  const std::string same = changed("[]");
  EXPECT_EQ(divergence(same), 0.0);
  EXPECT_EQ(array(same, "/arrays/resid_post3").values, array(plain_, "/arrays/resid_post3").values);
}

TEST_F(ExplorerChanges, AHeadIsSwitchedOff) {
  const std::string id = changed(R"([{"kind":"ablate","point":"L2H4"}])");
  for (const float value : array(id, "/arrays/z2?heads=4").values) EXPECT_EQ(value, 0.0F);
  EXPECT_EQ(array(id, "/arrays/z1").values, array(plain_, "/arrays/z1").values);
  EXPECT_GT(divergence(id), 1e-4);
}

TEST_F(ExplorerChanges, EdgesAreCut) {
  const std::string id = changed(
      R"([{"kind":"cut","layer":4,"head":1,"edges":[[7,5],[7,6]]},
          {"kind":"cut","layer":4,"head":3,"edges":[[7,5]],"renormalise":true}])");
  const auto row = array(id, fmt::format("/attention/self/4/1/rows/{}", hare_position));
  const auto was = array(plain_, fmt::format("/attention/self/4/1/rows/{}", hare_position));
  EXPECT_EQ(row.values[5], 0.0F);
  EXPECT_EQ(row.values[6], 0.0F);
  EXPECT_EQ(row.values[0], was.values[0]);
  const auto whole = array(id, fmt::format("/attention/self/4/3/rows/{}", hare_position));
  double sum = 0;
  for (const float value : whole.values) sum += value;
  EXPECT_NEAR(sum, 1.0, 1e-5);
  EXPECT_EQ(whole.values[5], 0.0F);
  EXPECT_GT(divergence(id), 1e-3);  // what a hare is like hangs on these edges
  // Every view of the head shows the pattern that was used.
  const Json walk = explorer_.get("/api/traces/" + id + "/walk?layer=4&head=1");
  EXPECT_EQ(walk["answers"][6]["share"], 0.0);
  EXPECT_EQ(array(id, "/attention/self/4/1/tiles/0/0/0").values,
            array(id, "/attention/self/4/1").values);
  const auto z = array(id, "/arrays/z4?positions=7&heads=1");
  for (std::size_t i = 0; i < z.values.size(); ++i) {
    EXPECT_NEAR(walk["output"][i].get<double>(), z.values[i], 1e-5);
  }
}

TEST_F(ExplorerChanges, ScalingAddingAndMeans) {
  const auto before = array(plain_, "/arrays/mlp_out1").values;
  const auto half =
      array(changed(R"([{"kind":"scale","point":"L1.mlp","factor":0.5}])"), "/arrays/mlp_out1")
          .values;
  EXPECT_NEAR(half[7], before[7] / 2, 1e-6);
  Json add = Json::parse(R"([{"kind":"add","point":"L1.mlp","positions":"3"}])");
  add[0]["vector"] = std::vector<float>(192, 2.0F);
  const auto added = array(explorer_.trace(hare_sentence, add), "/arrays/mlp_out1").values;
  EXPECT_NEAR(added[3 * 192], before[3 * 192] + 2, 1e-5);
  EXPECT_EQ(added[2 * 192], before[2 * 192]);
  const auto mean = array(changed(R"([{"kind":"mean","point":"L1.mlp"}])"), "/arrays/mlp_out1");
  EXPECT_EQ(mean.values[5], mean.values[192 + 5]);
}

TEST_F(ExplorerChanges, SwapsAnotherTextIn) {
  const std::string other = explorer_.trace("Late one evening, a shaggy black hare");
  ASSERT_EQ(explorer_.get("/api/traces/" + other)["tokens"].size(),
            explorer_.get("/api/traces/" + plain_)["tokens"].size());
  const std::string whole = explorer_.trace(
      hare_sentence,
      Json::array({{{"kind", "swap"}, {"point", "hook_resid_pre"}, {"from", other}}}));
  EXPECT_EQ(array(whole, "/arrays/resid_post3").values, array(other, "/arrays/resid_post3").values);
  const std::string part =
      explorer_.trace(hare_sentence, Json::array({{{"kind", "swap"},
                                                   {"point", "blocks.1.hook_resid_pre"},
                                                   {"positions", "7"},
                                                   {"from", other},
                                                   {"from_positions", "6"}}}));
  EXPECT_EQ(array(part, "/arrays/blocks.1.hook_resid_pre?positions=7").values,
            array(other, "/arrays/blocks.1.hook_resid_pre?positions=6").values);
  const std::string frozen = explorer_.trace(
      hare_sentence, Json::array({{{"kind", "freeze"}, {"point", "L2H4"}, {"from", other}}}));
  EXPECT_EQ(array(frozen, "/attention/self/2/4").values,
            array(other, "/arrays/pattern2?heads=4").values);
}

// Changes that name their positions, or the text of their mean, stay the same as a text grows.
TEST_F(ExplorerChanges, HoldWhileTheTextGrows) {
  const std::string other = explorer_.trace("Late one evening, a shaggy black hare");
  Json longer = Json::array();
  const Json meta = explorer_.get("/api/traces/" + plain_);
  for (const Json& token : meta["tokens"]) longer.push_back(token["id"]);
  longer.push_back(longer[1]);
  const Json changes =
      Json::array({{{"kind", "freeze"}, {"point", "L2H4"}, {"from", other}, {"positions", "0-7"}},
                   {{"kind", "mean"}, {"point", "L1.mlp"}, {"from", plain_}}});
  const std::string grown =
      explorer_.post("/api/traces", {{"tokens", longer}, {"interventions", changes}})["id"];
  const auto frozen = array(grown, "/attention/self/2/4/rows/7").values;
  const auto theirs = array(other, "/attention/self/2/4/rows/7").values;
  for (std::size_t key = 0; key <= 7; ++key) EXPECT_EQ(frozen[key], theirs[key]) << key;
  const std::string held = changed(R"([{"kind":"mean","point":"L1.mlp"}])");
  EXPECT_EQ(array(grown, "/arrays/mlp_out1?positions=8").values,
            array(held, "/arrays/mlp_out1?positions=3").values);
}

TEST_F(ExplorerChanges, ABaseLendsItsTokens) {
  const Json meta = explorer_.post(
      "/api/traces",
      {{"base", plain_}, {"interventions", {{{"kind", "ablate"}, {"point", "L0"}}}}});
  EXPECT_EQ(meta["base"], plain_);
  EXPECT_EQ(meta["tokens"], explorer_.get("/api/traces/" + plain_)["tokens"]);
  EXPECT_EQ(meta["interventions"][0]["point"], "L0");
}

TEST_F(ExplorerChanges, WhatCannotBeIsRefusedWithOneMessage) {
  const std::string at = "/api/traces/" + plain_;
  const struct {
    const char* method;
    std::string target;
    int status;
    std::string says;
    std::string body{};
  } refusals[] = {
      {"GET", "/api/traces/t999", 404, "evicted, or never created"},
      {"DELETE", "/api/traces/t999", 404, "evicted"},
      {"GET", at + "/attention/self/99/0", 400, "layers 0 to 5"},
      {"GET", at + "/attention/self/0/6", 400, "heads 0 to 5"},
      {"GET", at + "/attention/self/0/0?pool=3", 400, "power of two"},
      {"GET", at + "/attention/self/0/0?query_begin=50&query_end=60", 400, "are empty"},
      {"GET", at + "/attention/self/0/0?pooling=median", 400, "median"},
      {"GET", at + "/attention/self/0/0/tiles/9/0/0", 400, "level 9"},
      {"GET", at + "/attention/self/0/0/tiles/0/1/0", 400, "tile (1, 0)"},
      {"GET", at + "/attention/self/0/0/rows/1000000000", 400, "position 1000000000"},
      {"GET", at + "/attention/self/0/x/rows/1", 400, "head"},
      {"GET", at + "/walk?position=1000000000", 400, "position 1000000000"},
      {"GET", at + "/next?temperature=nan", 400, "temperature"},
      {"GET", at + "/next?temperature=-1", 400, "temperature"},
      {"GET", at + "/next?limit=-3", 400, "limit"},
      {"GET", at + "/next?temprature=0.5", 400, "did you mean 'temperature'"},
      {"GET", at + "/attention/self/0/0?units=words", 400, "did you mean 'unit'"},
      {"GET", "/api/status?verbose=1", 400, "unknown parameter 'verbose'; it takes none"},
      {"GET", at + "/arrays/hook_qq", 400, "did you mean"},
      {"GET", at + "/arrays/q", 400, "name one"},
      {"GET", at + "/arrays/q0?positions=77", 400, "position 77"},
      {"GET", at + "/lens?positions=a-b", 400, "a-b"},
      {"GET", at + "/attribution?token=99999", 400, "99999"},
      {"GET", at + "/attribution?by=colour", 400, "colour"},
      {"GET", at + "/derivation?point=mlp_out&layer=7", 400, "layer 7"},
      {"GET", at + "/derivation?point=mlp_out&layer=1&index=192", 400, "channel 192"},
      {"GET", at + "/derivation", 400, ""},
      {"GET", at + "/figure?kind=pie", 400, "pie"},
      {"GET", at + "/compare/t999", 404, "t999"},
      {"GET", "/api/vectors?first=t1&second=t1:0", 400, "t1:4"},
      {"GET", "/api/neurons/0/768", 400, "neuron 768"},
      {"GET", "/api/parameters?config=gpt9", 404, "gpt9"},
      {"GET", "/api/parameters?layers=0", 400, "layers"},
      {"GET", "/api/runs/mine/metrics", 404, "mine"},
      {"PUT", "/api/traces", 405, "takes POST, GET"},
      {"POST", "/api/traces", 400, "none of \"text\"", "{}"},
      {"POST", "/api/traces", 400, "JSON", "{\"text\""},
      {"POST", "/api/traces", 400, "string", R"({"text":5})"},
      {"POST", "/api/traces", 400, "no tokens", R"({"tokens":[]})"},
      {"POST", "/api/traces", 400, "did you mean \"text\"", R"({"tex":"a"})"},
      {"POST", "/api/traces", 400, "-1", R"({"tokens":[-1]})"},
      {"POST", "/api/traces", 400, "2531", R"({"tokens":[2531]})"},
      {"POST", "/api/traces", 404, "t999", R"({"base":"t999"})"},
      {"POST", "/api/traces", 404, "no run", R"({"text":"a","model":{"run":"x","step":1}})"},
      {"POST", "/api/generate", 400, "max_new_tokens", R"({"text":"a","max_new_tokens":0})"},
      {"POST", "/api/generate", 400, "temperature", R"({"text":"a","temperature":-1})"},
      {"POST", "/api/generate", 400, "seed", R"({"text":"a","seed":0.5})"},
      {"POST", "/api/tokenize", 400, "no \"text\"", "{}"},
  };
  for (const auto& each : refusals) {
    const std::string message = explorer_.refusal(each.method, each.target, each.status, each.body);
    EXPECT_NE(message.find(each.says), std::string::npos) << each.target << ": " << message;
  }
  const std::string many = R"({"text":")" + std::string(40000, '\x7F') + R"("})";  // each a token
  EXPECT_NE(explorer_.refusal("POST", "/api/tokenize", 400, many).find("32768"), std::string::npos);
}

TEST_F(ExplorerChanges, InterventionsThatCannotBeAreRefused) {
  const std::string other = explorer_.trace("A hare");
  const struct {
    std::string intervention;
    int status;
    const char* says;
  } refusals[] = {
      {R"({"kind":"oblate","point":"L1"})", 400, "did you mean \"ablate\""},
      {R"({"kind":"ablate","point":"L9H1"})", 400, "did you mean 'L5'"},
      {R"({"kind":"ablate","point":"L1H9"})", 400, "heads 0 to 5"},
      {R"({"kind":"ablate","point":"hook_rezid_pre"})", 400, "did you mean"},
      {R"({"kind":"ablate","point":"L1","positions":"40"})", 400, "position 40"},
      {R"({"kind":"ablate","point":"L1","positions":"x"})", 400, "not a position range"},
      {R"({"kind":"ablate"})", 400, "no \"point\""},
      {R"({"kind":"scale","point":"L1","factor":"NaN"})", 400, "finite 32-bit number"},
      {R"({"kind":"scale","point":"L1","factor":null})", 400, "no \"factor\""},
      {R"({"kind":"scale","point":"L1","factor":1e300})", 400, "finite 32-bit number"},
      {R"({"kind":"add","point":"L1.mlp","vector":[1,2]})", 400, "192"},
      {R"({"kind":"cut","layer":0,"head":0,"edges":[[1,2]]})", 400, "1 to 2"},
      {R"({"kind":"cut","layer":0,"head":0,"edges":[[99,2]]})", 400, "position 99"},
      {R"({"kind":"cut","layer":0,"head":0,"edges":[5]})", 400, "[query, key]"},
      {R"({"kind":"cut","layer":0,"head":7,"edges":[[1,0]]})", 400, "head 7"},
      {R"({"kind":"swap","point":"L1","from":"t999"})", 404, "t999"},
      {R"({"kind":"swap","point":"L1","from":")" + other + "\"}", 400, "tokens and this text"},
      {R"({"kind":"freeze","point":"L1H1","from":")" + other + "\"}", 400, "tokens and this text"},
      {R"({"kind":"freeze","point":"L1H1","positions":"0-2","from":")" + other + "\"}", 400,
       "has positions 0 to"},
      {R"({"kind":"freeze","positions":"0-1","from":")" + other + "\"}", 400, "needs a \"point\""},
      {R"({"kind":"mean","point":"L1.mlp","from":"t999"})", 404, "t999"},
      {R"({"kind":"swap","point":"L1","positions":"1-2","from_positions":"1","from":")" + other +
           "\"}",
       400, "must have the same length"},
      {"5", 400, "JSON object"},
  };
  for (const auto& each : refusals) {
    const std::string message = explorer_.refusal(
        "POST", "/api/traces", each.status,
        R"({"text":"Late one evening","interventions":[)" + each.intervention + "]}");
    EXPECT_NE(message.find(each.says), std::string::npos) << each.intervention << ": " << message;
  }
}

TEST(ExplorerTraces, TheOneUsedLongestAgoGoesFirst) {
  const auto make = [] {
    const std::int64_t vocabulary = 40;
    return LoadedModel{.name = "small", .transformer = heed::testing::small_gpt(vocabulary)};
  };
  const std::int64_t one = TraceStore::bytes_needed(make().transformer.architecture(), 20);
  TestExplorer explorer(make(), {.trace_budget = 2 * one});
  const Json tokens = std::vector<int>(20, 3);
  const std::string first = explorer.post("/api/traces", {{"tokens", tokens}})["id"];
  const std::string second = explorer.post("/api/traces", {{"tokens", tokens}})["id"];
  explorer.get("/api/traces/" + first);
  const std::string third = explorer.post("/api/traces", {{"tokens", tokens}})["id"];
  explorer.get("/api/traces/" + first);
  explorer.get("/api/traces/" + third);
  EXPECT_NE(explorer.refusal("GET", "/api/traces/" + second, 404).find("evicted"),
            std::string::npos);
  EXPECT_LE(explorer.get("/api/status")["trace_bytes"], 2 * one);
  // What could never fit is refused before it is read, with what it needs; the others stay.
  const Json longer = std::vector<int>(64, 3);
  const std::string message =
      explorer.refusal("POST", "/api/traces", 413, Json{{"tokens", longer}}.dump());
  EXPECT_NE(message.find("MiB"), std::string::npos) << message;
  explorer.get("/api/traces/" + first);
  explorer.send("DELETE", "/api/traces/" + first);
  explorer.refusal("GET", "/api/traces/" + first, 404);
  EXPECT_EQ(explorer.get("/api/traces")["traces"].size(), 1);
  // A trace in reused memory is like one in new memory.
  const std::string again = explorer.post("/api/traces", {{"tokens", tokens}})["id"];
  EXPECT_EQ(explorer.array("/api/traces/" + again + "/arrays/resid_post1").values,
            explorer.array("/api/traces/" + third + "/arrays/resid_post1").values);
}

TEST(ExplorerGeneration, WritesWhatHeedGenerateWrites) {
  TestExplorer& explorer = starter_explorer();
  const std::vector<std::int32_t> prompt = explorer.model().encode(hare_sentence);
  const GenerationResult expected =
      generate(explorer.model().transformer, explorer.model().tokenizer.get(), prompt,
               {.max_new_tokens = 12, .sampling = {.seed = 7}});
  const auto events = explorer.events(
      "/api/generate", {{"text", hare_sentence}, {"max_new_tokens", 12}, {"seed", 7}, {"top", 3}});
  ASSERT_EQ(events.size(), expected.tokens.size() + 1);
  std::string text;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(events[i].name, "token");
    EXPECT_EQ(events[i].data["step"], i);
    EXPECT_EQ(events[i].data["token"]["id"], expected.tokens[i]);
    EXPECT_EQ(events[i].data["candidates"].size(), 3);
    EXPECT_GT(events[i].data["drawn"], 0.0);
    text += events[i].data["text"].get<std::string>();
  }
  EXPECT_EQ(text, expected.text);
  EXPECT_EQ(events.back().name, "done");
  EXPECT_EQ(events.back().data["finish_reason"], "length");
  EXPECT_EQ(events.back().data["trace"]["tokens"].size(), prompt.size() + 12);
}

TEST(ExplorerGeneration, IsChangedByInterventionsAndEndsWithItsReader) {
  TestExplorer& explorer = starter_explorer();
  const Json ablated = Json::array({{{"kind", "ablate"}, {"point", "L3.attn"}}});
  const auto events = explorer.events("/api/generate", {{"text", hare_sentence},
                                                        {"max_new_tokens", 3},
                                                        {"interventions", ablated},
                                                        {"temperature", 0}});
  const std::string id = events.back().data["trace"]["id"];
  for (const float value : explorer.array("/api/traces/" + id + "/arrays/attn_out3").values) {
    EXPECT_EQ(value, 0.0F);
  }
  // Step by step with a cache, or all at once: the same numbers.
  const Json next =
      explorer.get(fmt::format("/api/traces/{}/next?position={}&limit=1", id, hare_position));
  EXPECT_EQ(next["candidates"][0]["id"], events[0].data["token"]["id"]);
  EXPECT_NEAR(next["candidates"][0]["probability"].get<double>(),
              events[0].data["probability"].get<double>(), 1e-5);

  const Reply reply = explorer.send("POST", "/api/generate",
                                    Json{{"text", hare_sentence}, {"max_new_tokens", 200}}.dump());
  KeepingWriter writer(2);
  write_stream(reply, writer);
  EXPECT_EQ(writer.writes, 2);
}

}  // namespace
}  // namespace heed::server
