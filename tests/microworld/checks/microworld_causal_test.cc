#include "microworld/checks/microworld_check.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "microworld/checks/marked_story.h"
#include "microworld/microworld.h"
#include "support/small_model.h"

namespace heed {
namespace {

TEST(MicroworldCausality, CountsTheMarksOfItsStories) {
  const auto tokenizer = testing::microworld_tokenizer();
  const Transformer transformer = testing::small_gpt(tokenizer->vocabulary_size(), 512);
  const auto causality =
      check_microworld_causality(transformer, *tokenizer, {.stories = 12, .seed = 2});
  std::int64_t nouns = 0;
  std::int64_t mysteries = 0;
  const microworld::Microworld microworld(2);
  for (int i = 0; i < 12; ++i) {
    const MarkedStory story = mark_story(microworld.story(i), *tokenizer);
    nouns += std::ssize(story.nouns);
    mysteries += story.mystery.has_value();
  }
  ASSERT_GT(mysteries, 0);
  EXPECT_LE(causality.noun_to_adjectives.cases, nouns);
  EXPECT_GT(causality.noun_to_adjectives.cases, nouns / 2);
  EXPECT_EQ(causality.last_word_to_clue.cases, mysteries);
  EXPECT_EQ(causality.all_words_to_clue.cases, mysteries);
  // Random weights attend to everything: what is cut is missed, a little.
  const CausalEffect& effect = causality.noun_to_adjectives;
  EXPECT_NE(effect.probability, effect.probability_cut);
  EXPECT_NE(effect.probability, effect.probability_control);
}

// Zero weights attend evenly to values that are zero: nothing that is cut can change anything.
TEST(MicroworldCausality, FindsNoEffectWhereAttentionCarriesNothing) {
  const auto tokenizer = testing::microworld_tokenizer();
  const Transformer transformer(
      {.stacks = {make_gpt_config(1, 2, 16, 512, tokenizer->vocabulary_size())}});
  const auto causality =
      check_microworld_causality(transformer, *tokenizer, {.stories = 4, .seed = 2});
  const CausalEffect& effect = causality.noun_to_adjectives;
  EXPECT_GT(effect.cases, 0);
  EXPECT_NEAR(effect.probability, 1.0 / tokenizer->vocabulary_size(), 1e-6);
  EXPECT_EQ(effect.probability, effect.probability_cut);
  EXPECT_EQ(effect.probability, effect.probability_control);
}

TEST(MicroworldCausality, RefusesNoStories) {
  const auto tokenizer = testing::microworld_tokenizer();
  const Transformer transformer = testing::small_gpt(tokenizer->vocabulary_size());
  EXPECT_THROW(check_microworld_causality(transformer, *tokenizer, {.stories = 0}), Error);
}

}  // namespace
}  // namespace heed
