#include "microworld/checks/evidence_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/small_model.h"

namespace heed {
namespace {

EvidenceCheckOptions few() {
  return {.variants = 7, .choosing = 2, .subjects = {"deed", "pronoun"}, .seed = 2};
}

TEST(EvidenceCheck, MeasuresEachSubjectOnItsVariants) {
  const auto tokenizer = testing::microworld_tokenizer();
  const Transformer transformer = testing::small_gpt(tokenizer->vocabulary_size(), 512);
  const auto checks = check_evidence(transformer, *tokenizer, few());
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].subject, "deed");
  EXPECT_EQ(checks[0].weights.size(), 1u);
  EXPECT_EQ(checks[1].weights.size(), 2u);
  for (const EvidenceCheck& check : checks) {
    EXPECT_EQ(check.variants, 7);
    EXPECT_GT(check.probability, 0);
    EXPECT_GT(check.replaced, 0);
    EXPECT_LE(check.heads.size(), 4u);
    EXPECT_EQ(check.right_by_depth.size(), 3u);
    for (const EvidenceWeight& weight : check.weights) {
      EXPECT_GT(weight.share, 0);
      EXPECT_GT(weight.even_share, 0);
    }
  }
}

// Zero weights attend evenly to values that are zero: no head carries anything.
TEST(EvidenceCheck, FindsNothingWhereAttentionCarriesNothing) {
  const auto tokenizer = testing::microworld_tokenizer();
  const Transformer transformer(
      {.stacks = {make_gpt_config(1, 2, 16, 512, tokenizer->vocabulary_size())}});
  for (const EvidenceCheck& check : check_evidence(transformer, *tokenizer, few())) {
    EXPECT_TRUE(check.heads.empty());
    EXPECT_EQ(check.probability, check.without_heads);
    EXPECT_EQ(check.probability, check.without_edges);
    EXPECT_NEAR(check.probability, check.replaced, 1e-6);
    EXPECT_NEAR(check.other_answer, check.other_answer_replaced, 1e-6);
    if (check.controls > 0) {
      EXPECT_NEAR(check.probability, check.control_replaced, 1e-6);
    }
    EXPECT_NEAR(check.probability, check.isolated, 1e-6);
    EXPECT_NEAR(check.probability, check.others_isolated, 1e-6);
    for (const EvidenceWeight& weight : check.weights) {
      EXPECT_NEAR(weight.share, weight.even_share, 1e-6);
      EXPECT_EQ(weight.prominent, 1);  // 7 of 7: seven sevenths add up to less
    }
  }
}

TEST(EvidenceCheck, RefusesUnknownSubjects) {
  const auto tokenizer = testing::microworld_tokenizer();
  const Transformer transformer = testing::small_gpt(tokenizer->vocabulary_size());
  EvidenceCheckOptions options = few();
  options.subjects = {"weather"};
  EXPECT_THROW(check_evidence(transformer, *tokenizer, options), Error);
  EXPECT_THROW(check_evidence(transformer, *tokenizer, {.variants = 0}), Error);
}

}  // namespace
}  // namespace heed
