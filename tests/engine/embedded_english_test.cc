// The model of ordinary English that heed carries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/known_models.h"
#include "engine/loaded_model.h"
#include "engine/measured_examples.h"
#include "engine/pull.h"

namespace heed {
namespace {

using testing::expect_error;

const std::string carried_english(english_name);

TEST(EmbeddedEnglish, HasANameOfItsOwn) {
  EXPECT_FALSE(may_be_pulled(carried_english));
  EXPECT_FALSE(is_translator(carried_english));
  expect_error(
      ErrorCode::invalid_argument, [] { pull_model(carried_english, {}); }, "built into heed");
}

TEST(EmbeddedEnglish, IsThereOrSaysThatItIsNot) {
  const std::vector<KnownModel> known = known_models();
  const bool is_listed =
      std::ranges::find(known, carried_english, &KnownModel::name) != known.end();
  EXPECT_EQ(is_listed, english_files().has_value());
  if (english_files()) {
    EXPECT_EQ(Model::load(carried_english).name(), carried_english);
    return;
  }
  expect_error(
      ErrorCode::not_found, [] { load_model(carried_english); }, "no model 'english'");
}

class CarriedEnglish : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!english_files()) GTEST_SKIP() << "this build carries no english";
  }
  static const LoadedModel& model() {
    static const LoadedModel loaded = load_model(carried_english);
    return loaded;
  }
};

// At most 12 MB of the program, all files together.
TEST_F(CarriedEnglish, IsSmall) {
  const EmbeddedModel files = *english_files();
  EXPECT_LE(files.weights.size() + files.tokenizer.size() + files.reading.size() +
                files.config.size() + files.examples.size(),
            12'000'000U);
}

// Computed in f32, so that gradients, edits and traces are those of any model.
TEST_F(CarriedEnglish, IsComputedInF32) {
  EXPECT_EQ(model().transformer.parameters().prepared_format(), kernels::WeightFormat::f32);
  EXPECT_EQ(model().embedded_name, carried_english);
  EXPECT_FALSE(model().is_starter());
  ASSERT_NE(model().reading, nullptr);
  EXPECT_FALSE(model().reading->title.empty());
  // The directory that it was made of is the same model.
  const LoadedModel again = load_model(HEED_SOURCE_DIR "/models/english");
  EXPECT_TRUE(std::ranges::equal(again.transformer.parameters().all(),
                                 model().transformer.parameters().all()));
}

TEST_F(CarriedEnglish, GoesOnInItsOwnWords) {
  // A text comes back to itself.
  const std::string text = "It was a dark and stormy night, and the old man sat by the fire.";
  EXPECT_EQ(model().tokenizer->decode(model().encode(text)), text);
}

TEST_F(CarriedEnglish, ExamplesClaimNothingThatIsNotMeasured) {
  const Json committed = parse_json(english_files()->examples, "examples.json");
  EXPECT_GE(committed.size(), 6U);
  EXPECT_LE(committed.size(), 8U);
  for (const OrderedJson& example : examples_for_page(model(), committed)) {
    EXPECT_FALSE(example.at("note").get<std::string>().empty());
    if (example.contains("layer")) continue;  // measured
    EXPECT_THAT(example.at("note").get<std::string>(), ::testing::Not(::testing::HasSubstr("%")));
  }
}

}  // namespace
}  // namespace heed
