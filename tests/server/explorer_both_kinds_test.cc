// What a trace of one text answers, and a trace of a source and a target: the same at the same
// addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/explorer_support.h"
#include "server/translation_server.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using ::testing::HasSubstr;
using testing::small_loaded_translator;
using testing::TestExplorer;

LoadedModel one_stack() {
  return {.name = "decoder", .transformer = heed::testing::small_gpt(300, 64)};
}

const Json one_text{{"tokens", {5, 6, 7, 5, 6}}};
const Json two_texts{{"source_tokens", {5, 6, 7, 5}}, {"target_tokens", {1, 6, 7}}};

void replace(std::string& text, std::string_view name, std::string_view value) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name)) {
    text.replace(at, name.size(), value);
  }
}

class BothKinds : public ::testing::Test {
 protected:
  struct Kind {
    std::string name;
    Json body;
    std::string site;
    std::string pattern;  // a point
    std::string trace{};  // its address
  };

  void SetUp() override {
    for (Kind& kind : kinds_) {
      kind.trace =
          "/api/traces/" + explorer_.post("/api/traces", kind.body)["id"].get<std::string>();
    }
  }
  static std::string filled(const Kind& kind, std::string rest) {
    replace(rest, "{site}", kind.site);
    replace(rest, "{pattern}", kind.pattern);
    replace(rest, "{other}", kind.trace.substr(kind.trace.rfind('/') + 1));
    return kind.trace + rest;
  }
  Json get(const Kind& kind, const std::string& rest) { return explorer_.get(filled(kind, rest)); }

  HeldTranslator held_{[] { return small_loaded_translator(); }};
  TestExplorer explorer_{one_stack(), {}, &held_};
  std::vector<Kind> kinds_{{"one text", one_text, "self", "blocks.1.attn.hook_pattern"},
                           {"two texts", two_texts, "cross", "decoder.0.cross_attn.hook_pattern"}};
};

// The names of an object, and of the first object of each list in it.
void collect(const Json& json, const std::string& place, std::set<std::string>& names) {
  if (json.is_array()) {
    if (!json.empty()) collect(json.front(), place + "[]", names);
    return;
  }
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    names.insert(place + "." + name);
    collect(value, place + "." + name, names);
  }
}

TEST_F(BothKinds, AnswerWithTheSameFields) {
  for (const char* rest :
       {"/next?position=1&limit=3", "/compare/{other}?top=2", "/lens?positions=1&top=2", "/effect",
        "/thumbnails?site={site}&format=json", "/attention/{site}/0/0?format=json",
        "/attention/{site}/0/0?unit=words&format=json",
        "/attention/{site}/0/0?unit=words&row=written&format=json",
        "/attention/{site}/0/0?values=scores&pool=2&pooling=max&format=json",
        "/attention/{site}/0/0/tiles/0/0/0?format=json", "/attention/{site}/0/0/rows/1?format=json",
        "/attention/{site}/0/0/rows/2?top=2", "/attention/{site}/0/0/rows/1?unit=words&top=2",
        "/attention/{site}/0/0/columns/1?top=2", "/attention/{site}/0/0/columns/0?unit=words&top=2",
        "/arrays/{pattern}?format=json"}) {
    std::vector<std::set<std::string>> names(2);
    for (std::size_t i = 0; i < 2; ++i) collect(get(kinds_[i], rest), "", names[i]);
    EXPECT_EQ(names[0], names[1]) << rest;
    EXPECT_FALSE(names[0].empty()) << rest;
  }
}

TEST_F(BothKinds, DescribeTheirSitesAndHeadsAlike) {
  for (const Kind& kind : kinds_) {
    const Json trace = explorer_.get(kind.trace);
    const Json site = trace["sites"].back();
    EXPECT_EQ(site["site"].get<std::string>(), kind.site);
    for (const char* common : {"id", "bytes", "seconds", "interventions", "base", "model"}) {
      EXPECT_TRUE(trace.contains(common)) << kind.name << " " << common;
    }
    const Json heads = get(kind, "/heads?site={site}")["heads"];
    ASSERT_EQ(heads.size(), site["layers"].get<std::size_t>() * site["heads"].get<std::size_t>());
    for (const char* common :
         {"layer", "head", "entropy", "evenness", "first", "self", "previous", "distance"}) {
      EXPECT_TRUE(heads[0].contains(common)) << kind.name << " " << common;
    }
    EXPECT_EQ(heads[0]["site"].get<std::string>(), kind.site);
    EXPECT_FALSE(heads[0]["habit"]["name"].get<std::string>().empty());
  }
}

TEST_F(BothKinds, TheLastRowOfTheLensIsThePrediction) {
  for (const Kind& kind : kinds_) {
    const Json lens = get(kind, "/lens?positions=1&top=1");
    const Json next = get(kind, "/next?position=1&limit=1");
    const Json& last = lens["cells"].back()[0];
    EXPECT_EQ(last["tokens"][0]["id"], next["candidates"][0]["id"]) << kind.name;
    // one rounding of the logits to f32 apart
    EXPECT_NEAR(last["probabilities"][0].get<double>(),
                next["candidates"][0]["probability"].get<double>(), 1e-5)
        << kind.name;
    EXPECT_EQ(lens["rows"].back(), "final_post");
    EXPECT_EQ(next["actual"]["token"]["id"], 7) << kind.name;
  }
}

TEST_F(BothKinds, EffectsAreOfTheInterventions) {
  for (const Kind& kind : kinds_) {
    for (const Json& position : get(kind, "/effect")["positions"]) {
      EXPECT_EQ(position["moved"].get<double>(), 0) << kind.name;
    }
    Json body = kind.body;
    body["interventions"] = {
        {{"kind", "scale"},
         {"point", kind.site == "self" ? "blocks.1.hook_resid_pre" : "decoder.0.hook_resid_pre"},
         {"factor", 3}}};
    const std::string changed = explorer_.post("/api/traces", body)["id"];
    const Json effects = explorer_.get("/api/traces/" + changed + "/effect")["positions"];
    ASSERT_EQ(effects.size(), kind.site == "self" ? 5U : 3U);
    const Json plain = get(kind, "/next?position=1"),
               next = explorer_.get("/api/traces/" + changed + "/next?position=1");
    EXPECT_GT(effects[1]["moved"].get<double>(), 0) << kind.name;
    EXPECT_EQ(effects[1]["actual"]["before"], plain["actual"]["probability"]);
    EXPECT_EQ(effects[1]["actual"]["after"], next["actual"]["probability"]);
    EXPECT_TRUE(effects.back()["actual"].is_null());
  }
}

TEST_F(BothKinds, RefuseAlike) {
  struct Refused {
    const char* rest;
    const char* says;
  };
  for (const Refused& refused : std::initializer_list<Refused>{
           {"/attention/other/0/0", "\"other\""},
           {"/attention/{site}/9/0", "layer 9"},
           {"/attention/{site}/0/99", "head 99"},
           {"/attention/{site}/0/0/rows/99", "99"},
           {"/attention/{site}/0/0/columns/-99", "-99"},
           {"/attention/{site}/0/0?unit=words&pool=2", "pool=1"},
           {"/attention/{site}/0/0?unit=words&values=scores", "values=pattern"},
           {"/attention/{site}/0/0?query_begin=3&query_end=2", ""},
           {"/heads?site=other", "\"other\""},
           {"/next?position=99", "99"},
           {"/lens?positions=99", "99"},
           {"/thumbnails?size=0", "size"},
           {"/arrays/nowhere", "nowhere"},
           {"/arrays/*", "single point"},
           {"/lens?kind=cross", "kind"}}) {
    for (const Kind& kind : kinds_) {
      EXPECT_THAT(explorer_.refusal("GET", filled(kind, refused.rest), 400),
                  HasSubstr(refused.says))
          << kind.name << " " << refused.rest;
    }
  }
}

TEST(BothKindsInLittleMemory, SayHowMuchTheyNeed) {
  HeldTranslator held([] { return small_loaded_translator(); });
  TestExplorer explorer(one_stack(), {.trace_budget = 1 << 10}, &held);
  for (const Json& body : {one_text, two_texts}) {
    EXPECT_THAT(
        explorer.refusal("POST", "/api/traces", 413, body.dump()),
        ::testing::AllOf(HasSubstr("tokens needs"), HasSubstr("MiB"), HasSubstr("--trace-budget")));
  }
}

// Traces of both kinds share one budget: the least recently used one goes.
TEST(BothKindsInLittleMemory, MakeRoomForEachOther) {
  HeldTranslator held([] { return small_loaded_translator(); });
  TestExplorer roomy(one_stack(), {}, &held);
  std::int64_t budget = 0;
  for (const Json& body : {one_text, two_texts}) {
    budget += roomy.post("/api/traces", body)["bytes"].get<std::int64_t>();
  }
  TestExplorer explorer(one_stack(), {.trace_budget = budget}, &held);
  for (const Json& body : {one_text, two_texts, one_text, two_texts, two_texts, one_text}) {
    explorer.post("/api/traces", body);
    EXPECT_LE(explorer.get("/api/status")["trace_bytes"].get<std::int64_t>(), budget);
  }
  EXPECT_EQ(explorer.get("/api/traces/t6")["id"], "t6");
  explorer.get("/api/traces/t1", 404);
  explorer.get("/api/traces/t2", 404);
}

TEST(BothKindsFromEachOther, TakeNoValues) {
  HeldTranslator held([] { return small_loaded_translator(); });
  TestExplorer explorer(one_stack(), {}, &held);
  const std::string one = explorer.post("/api/traces", one_text)["id"];
  const std::string two = explorer.post("/api/traces", two_texts)["id"];
  Json body = one_text;
  body["interventions"] = {{{"kind", "swap"}, {"point", "resid_pre1"}, {"from", two}}};
  EXPECT_THAT(explorer.refusal("POST", "/api/traces", 422, body.dump()),
              HasSubstr("is of a source and a target"));
  body = two_texts;
  body["interventions"] = {{{"kind", "swap"}, {"point", "decoder.resid_pre0"}, {"from", one}}};
  EXPECT_THAT(explorer.refusal("POST", "/api/traces", 422, body.dump()),
              HasSubstr("is of one text"));
}

}  // namespace
}  // namespace heed::server
