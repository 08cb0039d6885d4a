// The transcoders that heed carries for its starter, and the words that stand for their features.
#include "engine/carried_transcoders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "base/expect_error.h"
#include "base/temporary_directory.h"
#include "engine/embedded_files.h"
#include "microscope/features/dictionary_run.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "microworld/microworld.h"

namespace heed {
namespace {

class CarriedTranscodersOfStarter : public ::testing::Test {
 protected:
  void SetUp() override {
    if (starter_transcoders_files().empty() || !starter_files()) {
      GTEST_SKIP() << "this build carries no transcoders";
    }
  }
  static const LoadedModel& starter() {
    static const LoadedModel loaded = load_model("starter");
    return loaded;
  }
};

// At most 4 MB of the program, all files together.
TEST_F(CarriedTranscodersOfStarter, AreSmall) {
  std::size_t bytes = 0;
  for (const EmbeddedFile& file : starter_transcoders_files()) bytes += file.contents.size();
  EXPECT_LE(bytes, 4'000'000U);
}

TEST_F(CarriedTranscodersOfStarter, AreOneOfEachLayerByTheNameOfTheModel) {
  const std::vector<SparseDictionary> all = load_sparse_dictionaries("starter");
  ASSERT_EQ(std::ssize(all), starter().transformer.specification().layers);
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    const DictionaryInfo info = all[layer].info();
    EXPECT_TRUE(info.is_transcoder);
    EXPECT_EQ(info.input_point, fmt::format("blocks.{}.ln2.hook_normalized", layer));
    EXPECT_EQ(info.output_points.front(), fmt::format("blocks.{}.hook_mlp_out", layer));
  }
  EXPECT_EQ(SparseDictionary::load("starter").size(), all.size());
  EXPECT_EQ(carried_transcoders(starter())->of_layers.size(), all.size());
  testing::expect_error(
      ErrorCode::not_found, [] { load_sparse_dictionaries("./starter"); }, "does not exist");
}

TEST_F(CarriedTranscodersOfStarter, AreOfNoOtherModel) {
  LoadedModel other = load_model("starter");
  other.embedded_name.clear();
  EXPECT_EQ(carried_transcoders(other), nullptr);
}

// int8 is written back in f32 for SAELens, to the same numbers.
TEST_F(CarriedTranscodersOfStarter, AreSavedInF32) {
  const testing::TemporaryDirectory directory;
  const SparseDictionary first = load_sparse_dictionaries("starter").front();
  first.save((directory / "layer_0").string());
  const SparseDictionary again = load_sparse_dictionaries((directory / "layer_0").string()).front();
  for (const char* name : {"W_enc", "W_dec", "b_enc", "b_dec"}) {
    const SharedView a = first.weight(name), b = again.weight(name);
    ASSERT_EQ(a.shape, b.shape);
    const auto count = std::accumulate(a.shape.begin(), a.shape.end(), std::int64_t{1},
                                       std::multiplies<std::int64_t>());
    EXPECT_TRUE(std::equal(a.data, a.data + count, b.data)) << name;
  }
}

// Over 97 % of what feed-forward is worth, on stories that none of them was trained on.
TEST_F(CarriedTranscodersOfStarter, RecoverTheLoss) {
  std::string text;
  const microworld::Microworld world(20261);
  for (std::int64_t i = 0; i < 12; ++i) text += world.story(i).text + "\n";
  const SparseDictionary first = load_sparse_dictionaries("starter").front();
  const DictionaryEvaluation found =
      evaluate_dictionary(starter().transformer, starter().require_tokenizer(), text,
                          first.dictionary(), {.tokens = 2048});
  EXPECT_GT(found.recovered(), 0.97);
  EXPECT_GT(found.explained, 0.85);
}

// The words that a feature is called by are those at which it is active, in other stories: more of
// its activation falls on them than on the words of another feature of its layer.
TEST_F(CarriedTranscodersOfStarter, AreCalledByWhatTheyAnswerTo) {
  const auto carried = carried_transcoders(starter());
  const StackSpecification& stack = starter().transformer.specification();
  const microworld::Microworld world(77);
  const auto layers = static_cast<std::size_t>(stack.layers);
  // By feature: the activation of each token.
  std::vector<std::vector<std::map<std::int32_t, double>>> of_tokens(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    of_tokens[layer].resize(carried->names[layer].size());
  }
  for (std::int64_t i = 0; i < 40; ++i) {
    std::vector<std::int32_t> tokens = starter().encode(world.story(i).text);
    tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(stack.context)));
    const RecordedPass pass(starter().transformer, Texts{.source = {}, .target = tokens});
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const Tensor<float> x =
          pass.computed({PointKind::norm_2_normalized, static_cast<std::int64_t>(layer)});
      const FeatureRows acts = carried->of_layers[layer].dictionary().encode(
          x.view().reshape({std::ssize(tokens), stack.channels}));
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        for (auto e = static_cast<std::size_t>(acts.begins[t]);
             e < static_cast<std::size_t>(acts.begins[t + 1]); ++e) {
          of_tokens[layer][static_cast<std::size_t>(acts.features[e])][tokens[t]] += acts.values[e];
        }
      }
    }
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::vector<FeatureName>& names = carried->names[layer];
    int compared = 0, own_first = 0;
    double own_sum = 0, other_sum = 0;
    for (std::size_t f = 0; f < names.size(); ++f) {
      double all = 0;
      for (const auto& [token, sum] : of_tokens[layer][f]) all += sum;
      if (names[f].peaks.empty() || all == 0) continue;
      const auto share_of = [&](const FeatureName& name) {
        double sum = 0;
        for (const std::int32_t token : std::set(name.peaks.begin(), name.peaks.end())) {
          const auto found = of_tokens[layer][f].find(token);
          if (found != of_tokens[layer][f].end()) sum += found->second;
        }
        return sum / all;
      };
      const double own = share_of(names[f]), other = share_of(names[(f + 431) % names.size()]);
      ++compared;
      own_first += own > other ? 1 : 0;
      own_sum += own;
      other_sum += other;
    }
    EXPECT_GT(compared, 500);
    EXPECT_GT(own_first, 0.8 * compared) << "layer " << layer;
    EXPECT_GT(own_sum, 8 * other_sum) << "layer " << layer;
  }
}

}  // namespace
}  // namespace heed
