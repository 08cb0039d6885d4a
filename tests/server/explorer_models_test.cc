// Several models in one explorer: by name, within a budget of memory, each answering for itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/environment_variable.h"
#include "base/files.h"
#include "engine/pull.h"
#include "model/parameter_count.h"
#include "server/explorer_support.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestExplorer;

// The explored model, of another shape than those that were pulled.
LoadedModel explored_model() {
  return {.name = "own", .transformer = heed::testing::small_gpt(40, 32)};
}

class ExplorerModels : public heed::testing::SmallModelTest {
 protected:
  ExplorerModels() {
    for (const char* name : {"org--one", "org--two"}) pull(name);
  }

  // As `heed pull` leaves a model.
  static void pull(const std::string& directory_name) {
    fs::create_directories(default_model_cache());
    fs::copy(directory_->path(), default_model_cache() / directory_name);
  }

  static std::int64_t bytes_of_one() {
    return 4 * count_parameters(load_model(directory_->path().string()).transformer.specification())
                   .total;
  }

  Json listed(TestExplorer& explorer, const std::string& name) {
    const Json list = explorer.get("/api/models");
    for (const Json& model : list["models"]) {
      if (model["name"] == name) return model;
    }
    return nullptr;
  }

  static std::string made(TestExplorer& explorer, const std::string& model) {
    return explorer.post("/api/traces", {{"text", "One day the mole"}, {"model", model}})["id"];
  }

  const heed::testing::ScratchDirectory cache_;
  const heed::testing::EnvironmentVariable cache_variable_{"HEED_CACHE", cache_.path().c_str()};
};

TEST_F(ExplorerModels, AreListedWithWhatIsKnownOfThem) {
  write_text_file(default_model_cache() / "org--two" / "reading.json",
                  R"({"title": "two books", "tokens": 5})");
  // Half a download, a file, and a directory that no pull makes are no models.
  fs::create_directories(default_model_cache() / "gpt2");
  write_text_file(default_model_cache() / "gpt2" / "model.safetensors.partial", "12345");
  write_text_file(default_model_cache() / "note.txt", "a note");
  fs::create_directories(default_model_cache() / "not a name");
  fs::create_directories(default_model_cache() / "org--damaged");
  write_text_file(default_model_cache() / "org--damaged" / "config.json", "{\"model_type\": 5}");
  TestExplorer explorer(explored_model());
  const Json list = explorer.get("/api/models");
  const Json& first = list["models"][0];
  EXPECT_EQ(first["name"], "own");
  EXPECT_EQ(first["kind"], "served");
  EXPECT_EQ(first["loaded"], true);
  EXPECT_EQ(first["parameters"],
            count_parameters(explorer.model().transformer.specification()).total);
  const Json one = listed(explorer, "org/one"), two = listed(explorer, "org/two");
  EXPECT_EQ(one["kind"], "pulled");
  EXPECT_EQ(one["state"], "ready");
  EXPECT_EQ(one["loaded"], false);
  EXPECT_EQ(one["about"], nullptr);
  EXPECT_EQ(one["bytes"], fs::file_size(directory_->path() / "model.safetensors"));
  EXPECT_EQ(two["about"], "two books");
  const Json gpt2 = listed(explorer, "gpt2");
  EXPECT_EQ(gpt2["state"], "absent");
  EXPECT_EQ(gpt2["kind"], "published");
  EXPECT_EQ(gpt2["partial_bytes"], 5);
  EXPECT_GT(gpt2["bytes"], 500'000'000);
  const Json damaged = listed(explorer, "org/damaged");
  EXPECT_EQ(damaged["state"], "damaged");
  EXPECT_THAT(damaged["message"].get<std::string>(),
              AllOf(HasSubstr("model_type"), Not(HasSubstr(cache_.path().string()))));
  EXPECT_EQ(listed(explorer, "not a name"), nullptr);
  EXPECT_EQ(listed(explorer, "note.txt"), nullptr);
  EXPECT_THAT(explorer.refusal("GET", "/api/model?model=org/damaged", 422),
              HasSubstr("model_type"));
}

TEST_F(ExplorerModels, AnswerForThemselves) {
  TestExplorer explorer(explored_model());
  const LoadedModel expected = load_model(directory_->path().string());
  const std::string of_it = "model=org%2Fone";
  const Json card = explorer.get("/api/model?" + of_it);
  EXPECT_EQ(card["name"], "org/one");
  EXPECT_EQ(card["dimensions"]["vocabulary"], expected.transformer.specification().vocabulary_size);
  EXPECT_EQ(explorer.get("/api/model")["name"], "own");
  EXPECT_EQ(listed(explorer, "org/one")["loaded"], true);
  const std::vector<std::int32_t> ids = expected.encode("One day");
  EXPECT_EQ(explorer.post("/api/tokenize",
                          {{"text", "One day"}, {"model", "org/one"}})["tokens"][0]["id"],
            ids.front());
  EXPECT_THAT(explorer.refusal("POST", "/api/tokenize", 404, R"({"text": "One day"})"),
              HasSubstr("no tokenizer"));
  EXPECT_EQ(explorer.get("/api/vocabulary?" + of_it)["tokens"].size(),
            static_cast<std::size_t>(expected.transformer.specification().vocabulary_size));
  EXPECT_NE(explorer.get("/api/parameters?" + of_it), explorer.get("/api/parameters"));
  const auto embedding = explorer.array("/api/weights/token_embedding?rows=7&" + of_it);
  const View<const float> table = expected.transformer.parameters().token_embedding();
  EXPECT_THAT(embedding.values, ::testing::ElementsAreArray(table[7].span()));
  const auto position = explorer.array("/api/weights/position_embedding?rows=1&" + of_it);
  EXPECT_THAT(position.values,
              ::testing::ElementsAreArray(
                  expected.transformer.parameters().position_embedding()[1].span()));
  // The blocks of both models are drawn alike; the rest of them is not.
  explorer.array("/api/weights/1/feed_forward.up?rows=0&" + of_it);
  EXPECT_NE(explorer.get("/api/neurons/1/2?" + of_it)["promotes"],
            explorer.get("/api/neurons/1/2")["promotes"]);

  // What the page asks of a model without a trace, too.
  EXPECT_FALSE(explorer.get("/api/senses?" + of_it)["words"].empty());
  EXPECT_THAT(explorer.refusal("GET", "/api/senses/nothing?" + of_it, 404), HasSubstr("nothing"));
  EXPECT_THAT(explorer.refusal("GET", "/api/probes/culprit?text=One%20day&" + of_it, 409),
              Not(HasSubstr("unknown parameter")));

  const Json trace =
      explorer.post("/api/traces", {{"text", "One day"}, {"model", {{"name", "org/one"}}}});
  EXPECT_EQ(trace["model"]["name"], "org/one");
  EXPECT_EQ(trace["tokens"][0]["id"], ids.front());
  // What follows from a trace is of its model, also what it is the base of.
  const Json changed = explorer.post(
      "/api/traces",
      {{"base", trace["id"]}, {"interventions", {{{"kind", "ablate"}, {"point", "L1H0"}}}}});
  EXPECT_EQ(changed["model"]["name"], "org/one");
  const std::string id = trace["id"];
  const auto logits = explorer.array("/api/traces/" + id + "/arrays/logits?positions=-1");
  EXPECT_EQ(logits.values.size(),
            static_cast<std::size_t>(expected.transformer.specification().vocabulary_size));
  explorer.get("/api/traces/" + id + "/gradients");
  const auto events = explorer.events(
      "/api/generate", {{"text", "One day"}, {"model", "org/one"}, {"max_new_tokens", 2}});
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().data["trace"]["model"]["name"], "org/one");
}

// A client names one of the list, and no place on the disk.
TEST_F(ExplorerModels, OthersAreRefusedWithTheNamesThatThereAre) {
  TestExplorer explorer(explored_model());
  for (const std::string& name :
       {std::string("org/three"), std::string("../org--one"), directory_->path().string(),
        std::string("org--one"), std::string("org/one/"), std::string("."),
        std::string("translator")}) {
    SCOPED_TRACE(name);
    for (const Json& model : {Json(name), Json{{"name", name}}}) {
      const Json body{{"text", "One day"}, {"model", model}};
      EXPECT_THAT(explorer.refusal("POST", "/api/traces", 404, body.dump()),
                  AllOf(HasSubstr("there are: own"), HasSubstr("org/one, org/two")));
    }
  }
  EXPECT_THAT(explorer.refusal("GET", "/api/model?model=gpt2", 404),
              HasSubstr("'gpt2' here, but it can be downloaded"));
  EXPECT_THAT(explorer.refusal("POST", "/api/traces", 400, R"({"text": "One", "model": 5})"),
              HasSubstr("model"));
  EXPECT_EQ(explorer.get("/api/models")["models"][0]["name"], "own");
}

TEST_F(ExplorerModels, ThoseUsedLeastRecentlyMakeRoomWithTheirTraces) {
  TestExplorer explorer(explored_model(), {.model_budget = bytes_of_one() * 3 / 2});
  const std::string first = made(explorer, "org/one");
  const std::string own = explorer.post("/api/traces", {{"tokens", {1, 2, 3}}})["id"];
  const std::string second = made(explorer, "org/two");
  EXPECT_EQ(listed(explorer, "org/one")["loaded"], false);
  EXPECT_EQ(listed(explorer, "org/two")["loaded"], true);
  explorer.get("/api/traces/" + first, 404);
  explorer.get("/api/traces/" + own);
  explorer.get("/api/traces/" + second);
  // The base of a request stays while it is read, and so does its model.
  const Json body{{"base", second}, {"model", "org/one"}, {"tokens", {1, 2}}};
  EXPECT_THAT(
      explorer.refusal("POST", "/api/traces", 429, body.dump()),
      AllOf(HasSubstr("models that requests in progress use"), HasSubstr("--model-budget")));
  explorer.get("/api/traces/" + second);
  EXPECT_EQ(explorer.get("/api/model?model=org/one")["name"], "org/one") << "afterwards";
}

TEST_F(ExplorerModels, OneThatGeneratesIsNotDropped) {
  TestExplorer explorer(explored_model(), {.model_budget = bytes_of_one() * 3 / 2});
  {
    const Reply writing = explorer.send(
        "POST", "/api/generate",
        Json{{"text", "One day"}, {"model", "org/one"}, {"max_new_tokens", 3}}.dump());
    ASSERT_EQ(writing.status, 200);
    explorer.refusal("GET", "/api/model?model=org/two", 429);
    testing::KeepingWriter writer;
    write_stream(writing, writer);
    EXPECT_THAT(writer.text, HasSubstr("event: done"));
  }
  explorer.get("/api/model?model=org/two");
  TestExplorer small(explored_model(), {.model_budget = bytes_of_one() - 1});
  EXPECT_THAT(small.refusal("GET", "/api/model?model=org/two", 413), HasSubstr("--model-budget"));
  EXPECT_EQ(small.get("/api/model")["name"], "own");
}

// A directory of the model's name in the server's own, which `-m` would load.
TEST_F(ExplorerModels, ThePulledOneIsMeantWhateverLiesBesideTheServer) {
  const heed::testing::ScratchDirectory elsewhere;
  const fs::path before = fs::current_path();
  fs::current_path(elsewhere.path());
  fs::create_directories("org/one");
  TestExplorer explorer(explored_model());
  EXPECT_EQ(explorer.get("/api/model?model=org/one")["name"], "org/one");
  fs::current_path(before);
}

}  // namespace
}  // namespace heed::server
