// Predictions, explanations and derivations: the model's own numbers, and sums that are sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/views/report_json.h"
#include "generate/session.h"
#include "microscope/explain/logit_lens.h"
#include "model/presets.h"
#include "server/explorer_support.h"

namespace heed::server {
namespace {

using testing::starter_explorer;
using testing::TestExplorer;

class ExplorerNumbers : public ::testing::Test {
 protected:
  static constexpr const char* sentence =
      "Later that day she and the lawyer sat in a chemistry lesson and counted molecules. What she "
      "remembered best was the mole";

  TestExplorer& explorer_ = starter_explorer();
  std::string id_ = explorer_.trace(sentence);
  std::vector<std::int32_t> tokens_ = explorer_.model().encode(sentence);

  std::string at(const std::string& rest) const { return "/api/traces/" + id_ + rest; }
};

TEST_F(ExplorerNumbers, NextIsTheTableOfHeedPredict) {
  Session session(explorer_.model().transformer, std::ssize(tokens_));
  const std::vector<Candidate> expected =
      trace_candidates(session.feed(tokens_), {.temperature = 0.7, .top_k = 30}, tokens_);
  const Json next = explorer_.get(at("/next?temperature=0.7&top_k=30&limit=0"));
  ASSERT_EQ(next["candidates"].size(), expected.size());
  double drawn = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Json& row = next["candidates"][i];
    EXPECT_EQ(row["id"], expected[i].token) << i;
    EXPECT_NEAR(row["logit"].get<double>(), expected[i].logit, 1e-4);
    EXPECT_NEAR(row["probability"].get<double>(), expected[i].probability(SamplingStage::model),
                1e-5);
    drawn += row["drawn"].get<double>();
  }
  EXPECT_NEAR(drawn, 1.0, 1e-9);
  // Every option is one of the query, and is told.
  std::string query = "/next?limit=1";
  for (const SamplingOption& option : sampling_options()) {
    if (!option.is_seed()) query += fmt::format("&{}=1", option.name);
  }
  for (const auto& [name, value] : explorer_.get(at(query))["sampling"].items()) {
    EXPECT_EQ(value, 1) << name;
  }
  const Json second = explorer_.get(at("/next?temperature=0.7&top_k=30&limit=2&offset=2"));
  ASSERT_EQ(second["candidates"].size(), 2);
  EXPECT_EQ(second["candidates"][0], next["candidates"][2]);
  const Json found = explorer_.get(at("/next?find=ol&limit=5"));
  ASSERT_EQ(found["candidates"].size(), 5);
  for (const Json& row : found["candidates"]) {
    EXPECT_NE(row["token"].get<std::string>().find("ol"), std::string::npos);
  }
}

TEST_F(ExplorerNumbers, TheLastRowOfTheLensIsThePrediction) {
  const Json lens = explorer_.get(at("/lens?top=2&positions=-1,3"));
  EXPECT_EQ(lens["positions"], Json({3, std::ssize(tokens_) - 1}));
  EXPECT_EQ(lens["rows"].back(), "final_post");
  EXPECT_EQ(lens["rows"].size(), 7);
  const Json& cell = lens["cells"].back().back();
  const Json next = explorer_.get(at("/next?limit=1"));
  EXPECT_EQ(cell["tokens"][0]["id"], next["candidates"][0]["id"]);
  EXPECT_NEAR(cell["probabilities"][0].get<double>(),
              next["candidates"][0]["probability"].get<double>(), 1e-5);
  EXPECT_NEAR(cell["divergence"].get<double>(), 0.0, 1e-6);
  const LogitLens whole = look_through_layers(explorer_.model().transformer, tokens_, {.top = 2});
  EXPECT_NEAR(lens["cells"][1][0]["entropy"].get<double>(), whole.at(1, 3).entropy, 1e-5);
}

TEST_F(ExplorerNumbers, AttributionsSumToTheLogit) {
  const double logit = explorer_.get(at("/next?limit=1"))["candidates"][0]["logit"].get<double>();
  for (const char* by : {"component", "head", "neuron", "source"}) {
    const Json found = explorer_.get(at(std::string("/attribution?top=7&by=") + by));
    double sum = found["rest"].get<double>();
    for (const Json& part : found["parts"]) sum += part["value"].get<double>();
    EXPECT_EQ(found["parts"].size(), 7);
    EXPECT_NEAR(sum, logit, 1e-3) << by;
    EXPECT_NEAR(found["logit"].get<double>(), logit, 1e-4) << by;
  }
  const Json tokens = explorer_.get(at("/attribution?by=token&steps=32"));
  double sum = tokens["baseline"].get<double>();
  for (const Json& part : tokens["parts"]) sum += part["value"].get<double>();
  EXPECT_EQ(tokens["parts"].size(), tokens_.size());
  EXPECT_NEAR(sum, logit + tokens["completeness_error"].get<double>(), 1e-4);
}

TEST_F(ExplorerNumbers, AttributionsOfTokensBeginAtABaselineAndReachTheirSum) {
  const Json zero = explorer_.get(at("/attribution?by=token"));
  std::string ids;
  for (const std::int32_t token : tokens_)
    ids += fmt::format("{}{}", ids.empty() ? "" : ",", token);
  for (const std::string& baseline : {std::string("mean"), std::string("7")}) {
    const Json found = explorer_.get(at("/attribution?by=token&baseline=" + baseline));
    EXPECT_NE(found["baseline"], zero["baseline"]) << baseline;
    EXPECT_EQ(found["logit"], zero["logit"]);
  }
  const Json itself = explorer_.get(at("/attribution?by=token&baseline=" + ids));
  EXPECT_EQ(itself["baseline"], itself["logit"]);
  EXPECT_THAT(explorer_.refusal("GET", at("/attribution?by=token&baseline=1,x"), 400),
              ::testing::HasSubstr("expected zero, mean, or token ids"));
  EXPECT_THAT(explorer_.refusal("GET", at("/attribution?by=token&baseline=1,2"), 400),
              ::testing::HasSubstr("the baseline has 2 tokens"));
  const std::string murder = "/api/traces/" + explorer_.trace("The murderer was");
  EXPECT_THAT(explorer_.refusal("GET", murder + "/attribution?by=token&steps=1", 422),
              ::testing::HasSubstr("take more steps"));
}

TEST_F(ExplorerNumbers, EveryDerivationIsTheSumThatItSays) {
  const std::string edited =
      explorer_.trace(sentence, Json::parse(R"([{"kind":"ablate","point":"L1H2"},
        {"kind":"scale","point":"L2.mlp","factor":0.5},
        {"kind":"cut","layer":2,"head":4,"edges":[[20,5],[20,6]],"renormalise":true},
        {"kind":"scale","point":"blocks.3.ln1.hook_scale","factor":1.5}])"));
  std::vector<std::string> points{"logits"};
  const StackSpecification& config = explorer_.model().transformer.specification();
  for (const Point& point : all_points(config)) points.push_back(point_name(point));
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    points.push_back(fmt::format("blocks.{}.attn.hook_result", layer));
  }
  for (const std::string& id : {id_, edited}) {
    for (const std::string& point : points) {
      for (const int index : {0, 5, 31}) {
        const Json derived = explorer_.get(
            fmt::format("/api/traces/{}/derivation?point={}&head=4&position=20&index={}&key=5", id,
                        point, index));
        double sum = derived["rest"].get<double>() + derived["bias"].get<double>();
        double magnitude = std::abs(derived["bias"].get<double>());
        for (const Json& term : derived["terms"]) {
          sum += term["value"].get<double>();
          magnitude += std::abs(term["value"].get<double>());
        }
        const double value = derived["value"].get<double>();
        EXPECT_NEAR(sum, value, 1e-5 * std::max(magnitude, 1.0)) << id << " " << derived["name"];
        EXPECT_LE(derived["terms"].size(), 24);
        EXPECT_GE(derived["count"], derived["terms"].size());
      }
    }
  }
  // The value is the point's own.
  const auto q = explorer_.array(at("/arrays/q2?positions=20&heads=4"));
  EXPECT_EQ(explorer_.get(at("/derivation?point=q&layer=2&head=4&position=20&index=9"))["value"]
                .get<float>(),
            q.values[9]);
}

TEST_F(ExplorerNumbers, NeuronsSayWhatTheirColumnsSay) {
  const Json strongest = explorer_.get(at("/neurons?layer=2&top=5"))["neurons"];
  ASSERT_EQ(strongest.size(), 5);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_GE(strongest[i - 1]["contribution"], strongest[i]["contribution"]);
  }
  const auto neuron = strongest[0]["neuron"].get<int>();
  const Json one = explorer_.get(fmt::format("/api/neurons/2/{}?trace={}", neuron, id_));
  EXPECT_EQ(one["promotes"][0]["token"], strongest[0]["promotes"][0]);
  ASSERT_EQ(one["activations"].size(), tokens_.size());
  EXPECT_EQ(one["activations"].back(), strongest[0]["activation"]);
  EXPECT_TRUE(explorer_.get(fmt::format("/api/neurons/2/{}", neuron))["activations"].is_null());
}

TEST_F(ExplorerNumbers, VectorsAndPlanes) {
  const std::string other = explorer_.trace("In the morning she saw a garden and the mole");
  const Json same = explorer_.get(fmt::format("/api/vectors?first={}:-1&second={}:-1", id_, id_));
  ASSERT_EQ(same["layers"].size(), 8);
  for (const Json& layer : same["layers"]) {
    EXPECT_NEAR(layer["cosine"].get<double>(), 1.0, 1e-9);
    EXPECT_EQ(layer["distance"], 0.0);
  }
  const Json words =
      explorer_.get(fmt::format("/api/vectors?first={}:-1&second={}:-1", id_, other))["layers"];
  EXPECT_NEAR(words[0]["cosine"].get<double>(), 1.0, 1e-9);  // one token, whatever it means
  EXPECT_LT(words[5]["cosine"].get<double>(), 0.95);
  const Json plane = explorer_.get(at("/projection?point=resid_post3&other=") + other);
  EXPECT_EQ(plane["points"].size(), tokens_.size() + 9 + 1);
  double x = 0;
  for (const Json& point : plane["points"]) x += point["x"].get<double>();
  EXPECT_NEAR(x, 0.0, 1e-3);
  EXPECT_GT(plane["explained"][0], plane["explained"][1]);
}

// What the page says of a vector: the neighbours are those that a direct comparison with the served
// embeddings gives, and only where they are nearer than chance.
TEST_F(ExplorerNumbers, NearestWordsAreThoseOfTheServedEmbeddings) {
  const Json found = explorer_.get(at("/nearest?position=-1&top=4"));
  EXPECT_EQ(found["position"], tokens_.size() - 1);
  ASSERT_EQ(found["depths"].size(), 8U);
  const auto table = explorer_.array("/api/weights/token_embedding?");
  const auto words = static_cast<std::size_t>(table.shape[0]);
  const auto width = static_cast<std::size_t>(table.shape[1]);
  std::vector<double> mean(width);
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    mean[i % width] += table.values[i] / static_cast<double>(words);
  }
  const auto cosine = [&](std::span<const float> vector, std::size_t word) {
    double product = 0, first = 0, second = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const double a = vector[c] - mean[c], b = table.values[word * width + c] - mean[c];
      product += a * b;
      first += a * a;
      second += b * b;
    }
    return product / std::sqrt(first * second);
  };
  for (const Json& depth : found["depths"]) {
    const auto vector =
        explorer_.array(at("/arrays/" + depth["point"].get<std::string>() + "?positions=-1"));
    const auto best = depth["best"]["token"]["id"].get<std::size_t>();
    double largest = -1;
    for (std::size_t word = 0; word < words; ++word) {
      const bool is_own =
          depth["point"] == "hook_embed" && word == static_cast<std::size_t>(tokens_.back());
      if (!is_own) largest = std::max(largest, cosine(vector.values, word));
    }
    EXPECT_NEAR(cosine(vector.values, best), largest, 1e-5);
    EXPECT_NEAR(depth["best"]["cosine"], largest, 1e-5);
    EXPECT_EQ(depth["words"].empty(), depth["best"]["cosine"] <= depth["chance"]) << depth;
    for (const Json& word : depth["words"]) EXPECT_GT(word["cosine"], depth["chance"]);
  }
  explorer_.refusal("GET", at("/nearest?top=0"), 400);
  explorer_.refusal("GET", at("/nearest?position=99"), 400);
}

TEST_F(ExplorerNumbers, DirectionsAreCosinesWithTheServedRows) {
  const Json found = explorer_.get(at("/directions?tokens=7,9&position=2"));
  ASSERT_EQ(found["words"].size(), 2U);
  ASSERT_EQ(found["points"].size(), 7U);
  const auto row = explorer_.array("/api/weights/token_embedding?rows=9");
  for (std::size_t at_point = 0; at_point < 7; ++at_point) {
    const auto vector = explorer_.array(
        at("/arrays/" + found["points"][at_point].get<std::string>() + "?positions=2"));
    double product = 0, first = 0, second = 0;
    for (std::size_t c = 0; c < row.values.size(); ++c) {
      product += double{vector.values[c]} * row.values[c];
      first += double{vector.values[c]} * vector.values[c];
      second += double{row.values[c]} * row.values[c];
    }
    EXPECT_NEAR(found["words"][1]["cosines"][at_point], product / std::sqrt(first * second), 1e-5);
    EXPECT_LE(found["mean"][at_point], found["largest"][at_point]);
  }
  explorer_.refusal("GET", at("/directions"), 400);
  explorer_.refusal("GET", at("/directions?tokens=999999"), 400);
  explorer_.refusal("GET", at("/directions?tokens=1&direction=up"), 400);
}

TEST_F(ExplorerNumbers, FiguresAreFiles) {
  for (const std::string kind : {"attention", "heads", "lens", "next"}) {
    EXPECT_TRUE(explorer_.send("GET", at("/figure?kind=" + kind)).body.starts_with("<svg"));
    EXPECT_TRUE(
        explorer_.send("GET", at("/figure?format=png&kind=" + kind)).body.starts_with("\x89PNG"));
  }
}

TEST_F(ExplorerNumbers, CountsAsHeedParamsDoes) {
  const Json counted = explorer_.get("/api/parameters?config=gpt3");
  EXPECT_EQ(counted["total"].get<std::int64_t>(),
            parameter_count_json("gpt3", model_preset("gpt3").config)["total"].get<std::int64_t>());
  std::int64_t sum = 0;
  for (const Json& part : counted["parts"]) sum += part["parameters"].get<std::int64_t>();
  EXPECT_EQ(sum, counted["total"]);
  EXPECT_EQ(explorer_.get("/api/parameters")["total"],
            explorer_.get("/api/model")["dimensions"]["parameters"]);
  EXPECT_EQ(explorer_.get("/api/parameters?layers=2&heads=2&channels=8&vocabulary=10&context=4&"
                          "tied=true&bias=false")["embedding"],
            80);
}

}  // namespace
}  // namespace heed::server
