// The translator that heed carries: what it has learned, and what its examples say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/files.h"
#include "base/json.h"
#include "engine/embedded_files.h"
#include "engine/loaded_model.h"
#include "engine/measured_examples.h"
#include "engine/pull.h"
#include "engine/views/token_json.h"
#include "heed/translate.h"
#include "microscope/attention/alignment.h"
#include "microworld/bilingual/bilingual.h"
#include "microworld/checks/pair_check.h"

namespace heed {
namespace {

using testing::expect_error;

constexpr const char* own_name = "translator";

TEST(EmbeddedTranslator, HasANameOfItsOwn) {
  EXPECT_TRUE(is_translator(own_name));
  EXPECT_FALSE(may_be_pulled(own_name));
  expect_error(
      ErrorCode::unsupported, [] { load_model(own_name); }, "heed translate -m translator");
}

TEST(EmbeddedTranslator, IsThereOrSaysThatItIsNot) {
  if (translator_files()) {
    EXPECT_EQ(Translator::load(own_name).name(), own_name);
    EXPECT_TRUE(load_model_tokenizer(own_name)->end_of_text().has_value());
    return;
  }
  expect_error(
      ErrorCode::not_found, [] { Translator::load(own_name); }, "no model 'translator'");
  expect_error(
      ErrorCode::not_found, [] { load_model_tokenizer(own_name); }, "no model 'translator'");
}

class CarriedTranslator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!translator_files()) GTEST_SKIP() << "this build carries no translator";
  }
  static const LoadedModel& model() {
    static const LoadedModel loaded = load_translator(own_name, {}, TokenizerNeed::optional);
    return loaded;
  }
  static Json committed() { return parse_json(translator_files()->examples, "examples.json"); }
  static Json claims() {
    const auto file = std::filesystem::path(HEED_SOURCE_DIR) / "models/translator/claims.json";
    return parse_json(read_text_file(file), "claims.json");
  }
};

TEST_F(CarriedTranslator, IsSmall) {
  const EmbeddedModel files = *translator_files();
  EXPECT_LE(files.weights.size() + files.tokenizer.size() + files.config.size(),
            std::size_t{4} << 20);
}

TEST_F(CarriedTranslator, LosesLittleAndAlignsWords) {
  const LoadedModel translator = load_translator(own_name);
  const PairCheck check = check_pairs(translator.transformer, translator.tokenizers(),
                                      {.pairs = 400, .cut_pairs = 60, .seed = 90210});
  // Rare words weigh so much that a thousand pairs give 1.04 to 1.07 times the entropy.
  const PairLoss many =
      pair_loss(translator.transformer, translator.tokenizers(), {.pairs = 4000, .seed = 5});
  EXPECT_LE(many.loss_nats_per_pair, 1.05 * many.entropy_nats_per_pair);
  EXPECT_GE(check.grammatical, 0.98);
  EXPECT_LE(check.heads.front().counts.error_rate(), 0.10);
  EXPECT_GE(check.diagonal_error_rate, 0.2);
  // Of the words that carry meaning, hardly any survives the cut that takes its source away.
  EXPECT_GE(check.content_words.right, 0.85);
  EXPECT_LE(check.content_words.without_true, 0.25);
  EXPECT_GE(check.content_words.without_others, 0.8 * check.content_words.right);
}

TEST_F(CarriedTranslator, ExamplesAreWhatTheClaimsMeasureTo) {
  const Json measured = parse_json(measure_examples(model(), claims()).dump(), "measured");
  const Json said = committed();
  ASSERT_EQ(measured.size(), said.size());
  EXPECT_GE(said.size(), 6U);
  for (std::size_t i = 0; i < said.size(); ++i) {
    ASSERT_EQ(measured[i].size(), said[i].size()) << said[i]["id"];
    for (const auto& [key, value] : said[i].items()) {
      if (key == "says") continue;  // the same figures, rounded
      if (value.is_number_float()) {
        EXPECT_NEAR(measured[i][key].get<double>(), value.get<double>(), 0.002) << key;
      } else {
        EXPECT_TRUE(measured[i][key] == value) << said[i]["id"] << " " << key;
      }
    }
  }
}

// The words and the head of the page's examples, looked at by another way than the measurement's.
TEST_F(CarriedTranslator, ExamplesPointAtTheWordsThatBelongTogether) {
  for (const Json example : examples_for_page(model(), committed())) {
    const std::string id = example["id"];
    ModelTexts texts =
        translated_pair(model(), model().encode_source(example["source"].get<std::string>()));
    EXPECT_EQ(model().target_text(texts.tokens.target), example["target"].get<std::string>());
    const auto source = text_units(model(), texts.tokens.source, PairSide::source);
    const auto target = text_units(model(), texts.tokens.target);
    const RecordedPass pass(model().transformer, std::move(texts.tokens));
    RecordedAttention attention(pass);
    const CrossHead head{example["layer"].get<std::int64_t>(), example["head"].get<std::int64_t>()};
    const auto links =
        aligned_words(cross_by_words(pass, attention, head, {source, target}, WordRow::written));
    const AlignedWord& link = links.at(example["target_word"].get<std::size_t>());
    EXPECT_EQ(link.source, example["source_word"].get<std::int64_t>()) << id;
    EXPECT_GT(link.weight, 0.5) << id;
  }
}

TEST_F(CarriedTranslator, AClaimThatItDoesNotCarryIsRefused) {
  const auto refused = [](const char* key, const char* value, ErrorCode code,
                          const std::string& because) {
    Json changed = Json::array({claims()[0]});
    changed[0][key] = value;
    expect_error(
        code, [&] { measure_examples(model(), changed); }, because);
  };
  refused("attended", "The", ErrorCode::not_found, "do not say the same");
  refused("attended", "zebra", ErrorCode::not_found, "zebra");
  refused("source", "The zebra hums.", ErrorCode::not_found, "");
  expect_error(
      ErrorCode::corrupt_data, [] { measure_examples(model(), Json::object()); }, "array");
}

}  // namespace
}  // namespace heed
