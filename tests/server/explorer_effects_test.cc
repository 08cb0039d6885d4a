// Attention by words, heads by effect, the gradient of a loss, weights.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "microscope/intervene/edge_effects.h"
#include "server/explorer_support.h"
#include "support/gpt2_names.h"

namespace heed::server {
namespace {

using testing::starter_explorer;
using testing::TestExplorer;

class ExplorerEffects : public ::testing::Test {
 protected:
  static std::string path(const std::string& rest) { return "/api/traces/" + id() + rest; }
  static const std::string& id() {
    static const std::string made = starter_explorer().trace("One moleskin of carbon dioxide.");
    return made;
  }

  TestExplorer& explorer = starter_explorer();
};

TEST_F(ExplorerEffects, WordsCoverTheTokens) {
  const Json trace = explorer.get(path(""));
  std::int64_t covered = 0;
  bool has_long_word = false;
  for (const Json& word : trace["words"]) {
    EXPECT_EQ(word["begin"].get<std::int64_t>(), covered);
    covered = word["end"].get<std::int64_t>();
    has_long_word |= word["text"].get<std::string>() == "moleskin";
  }
  EXPECT_EQ(covered, static_cast<std::int64_t>(trace["tokens"].size()));
  EXPECT_TRUE(has_long_word);
}

TEST_F(ExplorerEffects, WeightsOfAWordAreSumsOfItsTokens) {
  const Json words = explorer.get(path(""))["words"];
  const std::string head = path("/attention/self/1/2");
  const TestExplorer::Array tokens = explorer.array(head);
  const TestExplorer::Array by_words = explorer.array(head + "?unit=words");
  const auto positions = static_cast<std::size_t>(tokens.shape[0]);
  ASSERT_EQ(by_words.shape, (std::vector<std::int64_t>(2, std::ssize(words))));
  for (std::size_t q = 0; q < words.size(); ++q) {
    const std::size_t row = words[q]["end"].get<std::size_t>() - 1;
    for (std::size_t k = 0; k < words.size(); ++k) {
      double sum = 0;
      for (auto s = words[k]["begin"].get<std::size_t>(); s < words[k]["end"]; ++s) {
        sum += tokens.values[row * positions + s];
      }
      EXPECT_NEAR(by_words.values[q * words.size() + k], sum, 1e-6) << q << " " << k;
    }
  }
  const TestExplorer::Array row = explorer.array(head + "/rows/4?unit=words");
  EXPECT_NEAR(std::accumulate(row.values.begin(), row.values.end(), 0.0), 1, 1e-5);
  const TestExplorer::Array column = explorer.array(head + "/columns/2?unit=words");
  for (std::size_t q = 0; q < words.size(); ++q) {
    std::size_t key = 0;
    while (words[key]["end"].get<std::int64_t>() <= 2) ++key;
    EXPECT_NEAR(column.values[q], by_words.values[q * words.size() + key], 1e-6);
  }
  EXPECT_EQ(explorer.array(head + "?unit=words&query_begin=1&query_end=3&key_end=2").shape,
            (std::vector<std::int64_t>{2, 2}));
}

TEST_F(ExplorerEffects, WordsAreNeitherPooledNorScored) {
  for (const char* wrong : {"pool=2", "values=scores"}) {
    explorer.refusal("GET", path("/attention/self/0/0?unit=words&") + wrong, 400);
  }
  explorer.refusal("GET", path("/attention/self/0/0?unit=letters"), 400);
}

// The page and the terminal have one rule: that of edge_to_show(), by tokens or by words.
TEST_F(ExplorerEffects, TheEdgeShownIsThatOfEveryCommand) {
  const LoadedModel& model = explorer.model();
  const std::vector<std::int32_t> tokens = model.encode("One moleskin of carbon dioxide.");
  const Json words = explorer.get(path(""))["words"];
  std::vector<TokenRun> runs;
  for (const Json& word : words) runs.push_back({word["begin"], word["end"]});
  const std::int64_t position = std::ssize(tokens) - 2;
  const TokenRun word =
      *std::ranges::find_if(runs, [&](const TokenRun& each) { return each.end > position; });
  for (const char* unit : {"tokens", "words"}) {
    const auto expected =
        edge_to_show(model.transformer, tokens,
                     {{word.begin, position + 1},
                      std::string(unit) == "words" ? runs : single_tokens(std::ssize(tokens))});
    const Json shown = explorer.get(path(fmt::format("/head?position={}&unit={}", position, unit)));
    EXPECT_EQ(shown["position"], position);
    EXPECT_EQ(shown["unit"], unit);
    const Json edge = shown["edge"];
    EXPECT_EQ(edge["layer"], expected->effect.edge.head.layer);
    EXPECT_EQ(edge["head"], expected->effect.edge.head.head);
    EXPECT_EQ(edge["query"], position);
    EXPECT_EQ(edge["key"]["begin"], expected->effect.edge.key.begin);
    EXPECT_EQ(edge["key"]["end"], expected->effect.edge.key.end);
    EXPECT_NEAR(edge["cut"].get<double>(), expected->effect.cut, 1e-6);
    EXPECT_NEAR(edge["replaced"].get<double>(), expected->effect.replaced.value(), 1e-6);
    EXPECT_EQ(edge["decides"], expected->decides());
    EXPECT_EQ(edge["gained"].size(), 3U);
  }
  EXPECT_EQ(explorer.get(path(fmt::format("/head?position={}", position)))["unit"], "tokens");
  EXPECT_TRUE(explorer.get(path("/head?position=0"))["edge"].is_null());
  explorer.refusal("GET", path("/head?unit=letters"), 400);
}

// What the answer says of the cut is what a trace with the edges cut predicts.
TEST_F(ExplorerEffects, TheCutThatIsToldIsThatOfATrace) {
  const std::string text = "They crashed the car";
  const Json edge =
      explorer.get("/api/traces/" + explorer.trace(text) + "/head?unit=words")["edge"];
  Json edges = Json::array();
  for (std::int64_t s = edge["key"]["begin"]; s < edge["key"]["end"]; ++s) {
    edges.push_back({edge["query"], s});
  }
  Json change{{"kind", "cut"}, {"edges", edges}, {"renormalise", true}};
  change["layer"] = edge["layer"];
  change["head"] = edge["head"];
  const std::string cut = explorer.trace(text, Json::array({change}));
  const Json next = explorer.get("/api/traces/" + cut + "/next?position=-1&limit=0");
  for (const Json& told : {edge["likeliest"], edge["likeliest_without"], edge["gained"][0]}) {
    const auto found = std::ranges::find_if(next["candidates"], [&](const Json& candidate) {
      return candidate["id"] == told["token"]["id"];
    });
    ASSERT_NE(found, next["candidates"].end());
    EXPECT_NEAR((*found)["probability"].get<double>(), told["after"].get<double>(), 1e-4);
  }
  EXPECT_EQ(next["candidates"][0]["id"], edge["likeliest_without"]["token"]["id"]);
}

TEST_F(ExplorerEffects, ChangedTracesHaveNoEdgeToShow) {
  const std::string changed =
      explorer.trace("One mole", Json::parse(R"([{"kind":"scale","point":"L1H2","factor":0.5}])"));
  explorer.refusal("GET", "/api/traces/" + changed + "/head", 422);
  explorer.refusal("GET", "/api/traces/" + changed + "/gradients", 422);
}

TEST_F(ExplorerEffects, TheLossIsThatOfTheNextTokenOfTheText) {
  const Json flow = explorer.get(path("/gradients?position=2"));
  const Json trace = explorer.get(path(""));
  EXPECT_EQ(flow["token"], trace["tokens"][3]);
  const Json next =
      explorer.get(path("/next?position=2&temperature=1&top_k=0&top_p=1&min_p=0&limit=0"));
  const auto of_token = std::ranges::find_if(next["candidates"], [&](const Json& candidate) {
    return candidate["id"] == flow["token"]["id"];
  });
  ASSERT_NE(of_token, next["candidates"].end());
  EXPECT_NEAR(flow["loss"].get<double>(), -std::log((*of_token)["probability"].get<double>()),
              1e-4);
  ASSERT_EQ(flow["rows"].size(), flow["norms"].size());
  ASSERT_FALSE(flow["norms"].empty());
  for (const Json& row : flow["norms"]) {
    ASSERT_EQ(row.size(), trace["tokens"].size());
    EXPECT_EQ(row[3].get<double>(), 0);
  }
}

TEST_F(ExplorerEffects, WeightsAreThoseOfTheModel) {
  const Parameters& parameters = explorer.model().transformer.parameters();
  const StackSpecification& config = explorer.model().transformer.specification();
  const TestExplorer::Array key =
      explorer.array("/api/weights/1/attention.key?head=2&rows=3,8&columns=0-1");
  ASSERT_EQ(key.shape, (std::vector<std::int64_t>{2, 2}));
  const View<const float> fused =
      parameters.tensor(heed::testing::gpt2_parameter("h.1.attn.c_attn.weight"));  // (3A, C)
  const std::int64_t row = config.attention_width() + 2 * config.head_size();
  EXPECT_EQ(key.values[1], fused(row + 1, 3));
  EXPECT_EQ(key.values[2], fused(row, 8));
  const TestExplorer::Array down = explorer.array("/api/weights/0/feed_forward.down?rows=5");
  ASSERT_EQ(down.shape, (std::vector<std::int64_t>{1, config.channels}));
  EXPECT_EQ(down.values[7],
            parameters.tensor(heed::testing::gpt2_parameter("h.0.mlp.c_proj.weight"))(7, 5));
  const TestExplorer::Array output = explorer.array("/api/weights/0/attention.output?head=1");
  ASSERT_EQ(output.shape, (std::vector<std::int64_t>{config.head_size(), config.channels}));
  EXPECT_EQ(output.values[3], parameters.tensor(heed::testing::gpt2_parameter(
                                  "h.0.attn.c_proj.weight"))(3, config.head_size()));
  EXPECT_EQ(explorer.array("/api/weights/token_embedding?rows=9&columns=4").values[0],
            parameters.token_embedding()(9, 4));
}

TEST_F(ExplorerEffects, WeightsThatAreNotThereAreRefused) {
  explorer.refusal("GET", "/api/weights/0/attention.query", 400);
  explorer.refusal("GET", "/api/weights/0/attention.query?head=99", 400);
  explorer.refusal("GET", "/api/weights/99/feed_forward.up", 400);
  explorer.refusal("GET", "/api/weights/0/attention.other", 404);
  explorer.refusal("GET", "/api/weights/0/feed_forward.up?head=0", 400);
  explorer.refusal("GET", "/api/weights/0/feed_forward.up?rows=-1", 400);
  explorer.refusal("GET", "/api/weights/0/feed_forward.up?columns=0-100000", 400);
}

class WordCausesRoute : public ::testing::Test {
 protected:
  static constexpr const char* text = "Late one evening, a fluffy blue hare";
  TestExplorer& explorer = starter_explorer();

  double probability_of(const Json& token, const std::string& trace) {
    const Json found = explorer.get("/api/traces/" + trace + "/next?limit=0");
    for (const Json& each : found["candidates"]) {
      if (each["id"] == token["id"]) return each["probability"];
    }
    return -1;
  }

  static void expect_honest(const Json& causes, const Json& path) {
    const double whole = causes["probability"], taken = whole - path["without"].get<double>();
    bool beats = taken >= 0.005;
    for (const Json& control : path["controls"]) {
      beats = beats && taken > std::abs(whole - control.get<double>());
    }
    EXPECT_EQ(path["cause"].get<bool>(), beats);
  }
};

// Of starter: features; without a path's is what the model gives with the vectors added that take
// away what they write.
TEST_F(WordCausesRoute, AreFeaturesWhereTheModelHasTranscoders) {
  const std::string id = explorer.trace(text);
  const Json causes = explorer.get("/api/traces/" + id + "/causes");
  EXPECT_EQ(causes["unit"], "feature");
  ASSERT_EQ(causes["paths"].size(), 3U);
  bool has_cause = false;
  for (const Json& path : causes["paths"]) {
    EXPECT_TRUE(path["neurons"].empty());
    ASSERT_FALSE(path["features"].empty());
    std::vector<double> taken;
    std::string writes;
    for (const Json& each : path["features"]) {
      const Json feature = explorer.get(
          fmt::format("/api/features/{}/{}", path["layer"].get<int>(), each["feature"].get<int>()));
      EXPECT_EQ(feature["words"], each["words"]);
      EXPECT_LE(each["words"].size(), each["of"].get<std::size_t>());
      writes = feature["writes"];
      taken.resize(feature["vector"].size());
      for (std::size_t c = 0; c < taken.size(); ++c) {
        taken[c] -= each["activation"].get<double>() * feature["vector"][c].get<double>();
      }
    }
    const std::string without = explorer.trace(
        text, Json::array({{{"kind", "add"},
                            {"point", writes},
                            {"vector", taken},
                            {"positions", std::to_string(path["position"].get<int>())}}}));
    EXPECT_NEAR(probability_of(causes["token"], without), path["without"].get<double>(), 1e-4);
    expect_honest(causes, path);
    has_cause = has_cause || path["cause"].get<bool>();
  }
  EXPECT_TRUE(has_cause);
}

TEST_F(WordCausesRoute, AreNeuronsWhereTheseAreWanted) {
  const std::string id = explorer.trace(text);
  const Json causes = explorer.get("/api/traces/" + id + "/causes?units=neurons");
  EXPECT_EQ(causes["unit"], "neuron");
  for (const Json& path : causes["paths"]) {
    EXPECT_TRUE(path["features"].empty());
    EXPECT_FALSE(path["neurons"].empty());
    expect_honest(causes, path);
  }
  explorer.refusal("GET", "/api/traces/" + id + "/causes?units=heads", 400);
}

TEST_F(WordCausesRoute, OfAnotherModelAreNeuronsAndItHasNoFeatures) {
  LoadedModel other = load_model("starter");
  other.embedded_name.clear();
  TestExplorer without(std::move(other));
  const std::string id = without.trace(text);
  EXPECT_EQ(without.get("/api/traces/" + id + "/causes")["unit"], "neuron");
  without.refusal("GET", "/api/features/0/1", 404);
  explorer.refusal("GET", "/api/features/0/864", 404);
  explorer.refusal("GET", "/api/features/6/1", 400);
}

}  // namespace
}  // namespace heed::server
