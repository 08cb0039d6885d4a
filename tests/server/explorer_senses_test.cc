// One word in many sentences, neurons by their effects, and a probe by depth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/files.h"
#include "engine/sense_sentences.h"
#include "microscope/explain/vectors.h"
#include "microscope/intervene/neuron_effects.h"
#include "microworld/microworld.h"
#include "server/explorer_support.h"

namespace heed::server {
namespace {

using testing::starter_explorer;
using testing::TestExplorer;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    result += plain ? std::string(1, c)
                    : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return result;
}

class ExplorerSenses : public ::testing::Test {
 protected:
  // The vector of the last token of a text.
  std::vector<float> last_vector(const std::string& text, const std::string& point) {
    const std::string id = explorer.trace(text);
    const TestExplorer::Array array = explorer.array("/api/traces/" + id + "/arrays/" + point);
    const auto channels = static_cast<std::ptrdiff_t>(array.shape.back());
    return {array.values.end() - channels, array.values.end()};
  }

  TestExplorer& explorer = starter_explorer();
};

TEST_F(ExplorerSenses, EverySentenceHasTheWordOnceAtItsEnd) {
  for (const bool is_starter : {true, false}) {
    LoadedModel model = load_model("starter");
    model.embedded_name = is_starter ? "starter" : "";
    const SenseLibrary& library = sense_library(model);
    EXPECT_GE(library.words.size(), 9U);
    for (const WordSenses& word : library.words) {
      std::map<std::size_t, std::set<std::string>> texts;
      for (const SenseSentence& sentence : word.sentences) {
        EXPECT_TRUE(sentence.text.ends_with(" " + word.word)) << sentence.text;
        texts[sentence.sense].insert(sentence.text);
      }
      EXPECT_GE(word.senses.size(), 2U);
      EXPECT_EQ(texts.size(), word.senses.size());
      for (const auto& [sense, of_sense] : texts) {
        EXPECT_GE(of_sense.size(), 6U) << word.word;
        EXPECT_LE(of_sense.size(), 10U) << word.word;
        EXPECT_EQ(of_sense.size(), texts.begin()->second.size()) << word.word;
      }
    }
  }
}

// The claim that the page makes: of every word that is offered, by the shuffled control; and that
// the word alone has no sense, nor does where it stands tell it.
TEST_F(ExplorerSenses, TheStarterTellsEveryWordApartAndItsEmbeddingDoesNot) {
  for (const Json& word : explorer.get("/api/senses")["words"]) {
    const std::string name = word["word"];
    const Json found = explorer.get("/api/senses/" + name);
    EXPECT_TRUE(found["tells_apart"]) << name;
    EXPECT_TRUE(found["depths"][0]["identical"]) << name;
    EXPECT_FALSE(found["depths"][1]["apart"]) << name;
    EXPECT_TRUE(found["depths"].back()["apart"]) << name;
    EXPECT_GT(found["depths"].back()["same"], 0.2) << name;
    EXPECT_LT(found["depths"].back()["other"], 0) << name;
  }
}

// Against vectors of traces, centred and compared here.
TEST_F(ExplorerSenses, CosinesAreThoseOfTheVectorsOfTraces) {
  const Json found = explorer.get("/api/senses/bank");
  const std::string point = "blocks.3.hook_resid_pre";
  std::vector<std::vector<double>> vectors;
  for (const Json& sentence : found["sentences"]) {
    const std::vector<float> row = last_vector(sentence["text"], point);
    vectors.emplace_back(row.begin(), row.end());
  }
  const std::size_t channels = vectors.front().size();
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0;
    for (const auto& row : vectors) mean += row[c] / static_cast<double>(vectors.size());
    for (auto& row : vectors) row[c] -= mean;
  }
  double sums[2] = {0, 0};
  int counts[2] = {0, 0};
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      double ab = 0, aa = 0, bb = 0;
      for (std::size_t c = 0; c < channels; ++c) {
        ab += vectors[i][c] * vectors[j][c];
        aa += vectors[i][c] * vectors[i][c];
        bb += vectors[j][c] * vectors[j][c];
      }
      const bool same = found["sentences"][i]["sense"] == found["sentences"][j]["sense"];
      sums[same] += ab / std::sqrt(aa * bb);
      ++counts[same];
    }
  }
  const Json depth = *std::ranges::find_if(found["depths"],
                                           [&](const Json& one) { return one["point"] == point; });
  EXPECT_NEAR(depth["same"].get<double>(), sums[1] / counts[1], 1e-4);
  EXPECT_NEAR(depth["other"].get<double>(), sums[0] / counts[0], 1e-4);
}

// Sentences of the microworld that are not in the set, with their truth: captions, whose words
// differ from those of most sentences of the set.
TEST_F(ExplorerSenses, OwnSentencesAreNamedRightly) {
  const microworld::Microworld world(5, {microworld::StoryKind::album});
  int named = 0, right = 0, all = 0;
  for (std::int64_t i = 0; i < 12; ++i) {
    const microworld::Story story = world.story(i);
    for (const microworld::SenseMark& mark : story.senses) {
      const std::string_view before = std::string_view(story.text).substr(0, mark.span.end);
      const std::string text(before.substr(before.rfind('\n') + 1));
      const Json found = explorer.get("/api/senses/" + mark.word + "?text=" + escaped(text));
      EXPECT_TRUE(found["own"]["depths"][0]["sense"].is_null());
      const Json sense = found["own"]["depths"].back()["sense"];
      ++all;
      if (sense.is_null()) continue;
      ++named;
      right += found["senses"][sense.get<std::size_t>()] == mark.sense;
    }
  }
  ASSERT_GT(all, 20);
  EXPECT_GT(named, all / 2);
  EXPECT_GE(right, named * 9 / 10);
}

// A sentence of one's own does not move the others.
TEST_F(ExplorerSenses, AnOwnSentenceLeavesTheOthersWhereTheyAre) {
  const Json alone = explorer.get("/api/senses/crane");
  const Json with = explorer.get("/api/senses/crane?text=" + escaped("The heron saw the crane."));
  EXPECT_TRUE(alone["own"].is_null());
  EXPECT_EQ(with["own"]["text"], "The heron saw the crane.");
  EXPECT_EQ(alone["depths"], with["depths"]);
}

TEST_F(ExplorerSenses, RefusesWordsThatAreNotThere) {
  EXPECT_NE(explorer.refusal("GET", "/api/senses/pizza", 404).find("mole"), std::string::npos);
  explorer.refusal("GET", "/api/senses/mole?text=" + escaped("It counted molecules"), 404);
  explorer.refusal("GET", "/api/senses/mole?text=" + std::string(4001, 'a'), 400);
}

TEST_F(ExplorerSenses, EffectsOfNeuronsAreTheLibrarys) {
  const std::string text = "Anna took a bag of coins to the";
  const std::string id = explorer.trace(text);
  const std::vector<std::int32_t> tokens = explorer.model().encode(text);
  const NeuronEffects expected =
      neuron_effects(explorer.model().transformer, tokens, {.layer = 5, .most = 8});
  const Json found = explorer.get("/api/traces/" + id + "/neurons/effects?layer=5");
  EXPECT_EQ(found["token"]["id"], expected.token);
  EXPECT_NEAR(found["probability"].get<double>(), expected.probability, 1e-6);
  EXPECT_EQ(found["matters"], expected.first_matters());
  ASSERT_EQ(found["neurons"].size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(found["neurons"][i]["neuron"], expected.neurons[i].id.neuron);
    EXPECT_NEAR(found["neurons"][i]["without"].get<double>(), expected.neurons[i].without, 1e-6);
  }
  // Switched off by an intervention, as the page does.
  const auto neuron = found["neurons"][0]["neuron"].get<int>();
  const Json off = {{{"kind", "ablate"},
                     {"point", fmt::format("L5N{}", neuron)},
                     {"positions", std::to_string(tokens.size() - 1)}}};
  const std::string changed = explorer.trace(text, off);
  const Json compared = explorer.get("/api/traces/" + id + "/compare/" + changed + "?top=1");
  EXPECT_NEAR(compared["rows"][0]["after"]["probability"].get<double>(),
              found["neurons"][0]["without"].get<double>(), 1e-5);
  // The list without runs has the same order.
  const Json listed = explorer.get("/api/traces/" + id + "/neurons?layer=5&top=8&by=direct");
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(listed["neurons"][i]["neuron"], found["neurons"][i]["neuron"]);
    EXPECT_NEAR(listed["neurons"][i]["direct"].get<double>(),
                found["neurons"][i]["direct"].get<double>(), 1e-5);
  }
  explorer.refusal("GET", "/api/traces/" + changed + "/neurons/effects", 422);
}

TEST_F(ExplorerSenses, PathsToAWordAreMeasuredByInterventions) {
  const std::string text = "Late one evening, a fluffy blue hare";
  const std::string id = explorer.trace(text);
  const Json found = explorer.get("/api/traces/" + id + "/causes?units=neurons");
  ASSERT_EQ(found["paths"].size(), 3U);
  int causes = 0;
  for (const Json& path : found["paths"]) {
    Json off = Json::array();
    for (const Json& neuron : path["neurons"]) {
      off.push_back({{"kind", "ablate"},
                     {"point", fmt::format("L{}N{}", path["layer"].get<int>(), neuron.get<int>())},
                     {"positions", std::to_string(path["position"].get<int>())}});
    }
    const std::string changed = explorer.trace(text, off);
    const Json next = explorer.get("/api/traces/" + changed + "/next?limit=1");
    EXPECT_EQ(next["candidates"][0]["id"], path["instead"]["id"]);
    EXPECT_NEAR(next["candidates"][0]["probability"].get<double>(),
                path["instead_probability"].get<double>(), 1e-5);
    if (path["cause"].get<bool>()) {
      ++causes;
      EXPECT_LT(path["without"].get<double>(), found["probability"].get<double>());
    }
    explorer.refusal("GET", "/api/traces/" + changed + "/causes", 422);
  }
  EXPECT_GE(causes, 1);
  // After an earlier position, as if the text ended there.
  const Json earlier =
      explorer.get("/api/traces/" + id + "/causes?position=3&paths=1&units=neurons");
  ASSERT_EQ(earlier["paths"].size(), 1U);
  EXPECT_LE(earlier["paths"][0]["position"].get<int>(), 3);
  explorer.refusal("GET", "/api/traces/" + id + "/causes?paths=9", 400);
}

// The page shows this sentence in the place of the contexts.
TEST(ExplorerNeurons, SayHowToGiveATextToSearch) {
  const std::string contexts = "/api/neurons/2/7/contexts?top=3";
  TestExplorer without(load_model("english"));
  const std::string told = without.refusal("GET", contexts, 409);
  EXPECT_NE(told.find("heed explore -m english --corpus book.txt"), std::string::npos) << told;
  EXPECT_NE(told.find("4 MB"), std::string::npos) << told;
  const heed::testing::TemporaryDirectory directory;
  write_text_file(directory / "book.txt", "The old man went down to the sea. He was tired.");
  ExplorerOptions options;
  options.corpus = directory / "book.txt";
  TestExplorer with(load_model("english"), options);
  const Json found = with.get(contexts);
  EXPECT_EQ(found["source"], "book.txt");
  EXPECT_FALSE(found["contexts"].empty());
}

// The claims that the page makes: which words stand in a mystery does not tell who did it, and the
// last vector does, from a block on.
TEST_F(ExplorerSenses, TheCulpritIsReadFromTheLastVectorBeyondItsControls) {
  const microworld::Story story =
      microworld::Microworld(31, {microworld::StoryKind::mystery}).story(4);
  std::string text = story.text.substr(0, story.culprit->answer.begin);
  const Json found = explorer.get("/api/probes/culprit?text=" + escaped(text));
  ASSERT_EQ(found["depths"].size(), 8U);
  EXPECT_LT(found["most_frequent"], 0.25);
  EXPECT_LT(found["words"], 0.8);
  for (const Json& depth : found["depths"]) EXPECT_LT(depth["shuffled"], 0.25) << depth;
  EXPECT_LT(found["depths"][0]["accuracy"], 0.25);  // of the word "the" alone
  EXPECT_FALSE(found["depths"][1]["beats_words"]);
  EXPECT_GT(found["depths"].back()["accuracy"], 0.95);
  EXPECT_TRUE(found["depths"].back()["beats_words"]);
  EXPECT_EQ(found["roles"][found["reading"].back().get<std::size_t>()], story.culprit->name);
  EXPECT_TRUE(explorer.get("/api/probes/culprit?text=The%20mole")["reading"].is_null());
}

}  // namespace
}  // namespace heed::server
