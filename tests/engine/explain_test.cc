#include "heed/explain.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "base/files.h"
#include "support/small_model.h"

namespace heed {
namespace {

class Explain : public ::testing::Test {
 protected:
  void SetUp() override { testing::write_small_model(directory.path() / "model"); }

  testing::ScratchDirectory directory;
  const std::vector<std::int32_t> tokens{5, 17, 4, 9};

  Model load(const char* name = "model") const {
    return Model::load((directory.path() / name).string());
  }
};

TEST_F(Explain, TheLensEndsAtTheModel) {
  const Model model = load();
  const auto lens = logit_lens(model, {.target = tokens}, 3);
  ASSERT_EQ(lens.size(), 3U);
  ASSERT_EQ(lens.back().size(), 4U);
  const auto next = model.predict(tokens, {}, 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lens.back().back().tokens[i], next[i].token);
    EXPECT_NEAR(lens.back().back().probabilities[i], next[i].probability, 1e-5);
  }
}

TEST_F(Explain, HeadsOfOneStackHaveNoKind) {
  const Model model = load();
  const auto found = heads(model, {.target = tokens});
  ASSERT_FALSE(found.empty());
  EXPECT_GT(found.front().entropy, 0);
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { heads(model, {.target = tokens}, "cross"); },
      "expected none, as the model has one stack");
}

TEST_F(Explain, PartsSumToTheLogit) {
  const Model model = load();
  const std::vector<float> logits = model.logits(tokens);
  for (const AttributeBy by :
       {AttributeBy::component, AttributeBy::head, AttributeBy::neuron, AttributeBy::source}) {
    double sum = 0;
    for (const LogitPart& part : attribute_logit(model, tokens, {.token = 7, .against = 8}, by)) {
      sum += part.value;
    }
    EXPECT_NEAR(sum, logits[7] - logits[8], 1e-4);  // logits of up to about ten
  }
  const TokenAttribution found =
      attribute_tokens(model, tokens, {.token = 7, .against = 8}, {.steps = 32});
  EXPECT_NEAR(found.logit, logits[7] - logits[8], 1e-4);
  double sum = -found.completeness_error;
  for (const double value : found.tokens) sum += value;
  EXPECT_NEAR(sum, found.logit - found.baseline, 1e-9);
  EXPECT_THROW(attribute_logit(model, tokens, {.token = -1}, AttributeBy::head), Error);
}

// Saved and loaded, with its bias of the head.
TEST_F(Explain, AProcessedModelPredictsTheSame) {
  const std::string ends = R"({"eos_token_id": [3, 5]})";
  write_text_file(directory.path() / "model/generation_config.json", ends);
  const Model model = load();
  save_processed(model, (directory.path() / "processed").string());
  EXPECT_EQ(read_text_file(directory.path() / "processed/generation_config.json"), ends);
  const Model processed = load("processed");
  const auto before = model.predict(tokens, {}, 5);
  const auto after = processed.predict(tokens, {}, 5);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(before[i].token, after[i].token);
    EXPECT_NEAR(before[i].probability, after[i].probability, 1e-5);
  }
}

}  // namespace
}  // namespace heed
