#include "microworld/checks/microworld_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "microworld/checks/marked_story.h"
#include "microworld/microworld.h"
#include "support/small_model.h"

namespace heed {
namespace {

TEST(NearestCentroid, SeparatesSensesThatLieApart) {
  std::vector<LabelledVector> vectors;
  for (int i = 0; i < 8; ++i) {
    const float side = i % 2 == 0 ? 1.0F : -1.0F;
    vectors.push_back({"mole", i % 2 == 0 ? "animal" : "skin", i / 4, {side, 0.1F * i}});
  }
  EXPECT_DOUBLE_EQ(nearest_centroid_accuracy(vectors), 1.0);
  for (LabelledVector& labelled : vectors) labelled.vector = {1, 1};
  EXPECT_DOUBLE_EQ(nearest_centroid_accuracy(vectors), 0.5);  // one vector has no senses
  // One half alone has this sense, of which nothing is known in the other.
  const double before = nearest_centroid_accuracy(vectors);
  vectors.push_back({"mole", "spy", 1, {9, 9}});
  EXPECT_DOUBLE_EQ(nearest_centroid_accuracy(vectors), before);
  EXPECT_TRUE(std::isnan(nearest_centroid_accuracy({})));
}

TEST(MarkedStory, MarksStandOnTheTokensOfTheirWords) {
  const auto tokenizer = testing::microworld_tokenizer();
  const microworld::Microworld world(8);
  std::size_t senses = 0, nouns = 0, evidence = 0, mysteries = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const microworld::Story story = world.story(i);
    const MarkedStory marked = mark_story(story, *tokenizer);
    EXPECT_EQ(tokenizer->decode(marked.tokens), "<|endoftext|>" + story.text + "<|endoftext|>");
    const auto text_at = [&](const TokenRange& range) {
      return tokenizer->decode(
          std::span(marked.tokens).subspan(range.begin, range.end - range.begin));
    };
    const auto expect_marked = [&](const TokenRange& range, const microworld::Span& span) {
      EXPECT_THAT(text_at(range), ::testing::HasSubstr(std::string(span.in(story.text))));
    };
    ASSERT_EQ(marked.senses.size(), story.senses.size());
    for (std::size_t k = 0; k < marked.senses.size(); ++k) {
      expect_marked(marked.senses[k].at, story.senses[k].span);
    }
    ASSERT_EQ(marked.nouns.size(), story.adjectives.size());
    for (std::size_t k = 0; k < marked.nouns.size(); ++k) {
      const microworld::AdjectiveMark& mark = story.adjectives[k];
      expect_marked(marked.nouns[k].at, mark.noun);
      ASSERT_EQ(marked.nouns[k].adjectives.size(), mark.adjectives.size());
      for (std::size_t a = 0; a < mark.adjectives.size(); ++a) {
        expect_marked(marked.nouns[k].adjectives[a], mark.adjectives[a]);
      }
    }
    ASSERT_EQ(marked.evidence.size(), story.evidence.size());
    for (std::size_t k = 0; k < marked.evidence.size(); ++k) {
      expect_marked(marked.evidence[k].word, story.evidence[k].word);
      expect_marked(marked.evidence[k].answer, story.evidence[k].answer);
    }
    senses += marked.senses.size();
    nouns += marked.nouns.size();
    evidence += marked.evidence.size();
    mysteries += marked.mystery.has_value();
    ASSERT_EQ(marked.mystery.has_value(), story.culprit.has_value());
    if (marked.mystery) {
      EXPECT_NE(text_at(marked.mystery->answer).find(story.culprit->name), std::string::npos);
      EXPECT_LT(marked.mystery->clue.end, marked.mystery->answer.begin);
    }
  }
  for (const std::size_t marks : {senses, nouns, evidence, mysteries}) EXPECT_GT(marks, 5U);
}

class MicroworldCheckTest : public ::testing::Test {
 protected:
  std::unique_ptr<Tokenizer> tokenizer = testing::microworld_tokenizer();
  Transformer transformer = testing::small_gpt(tokenizer->vocabulary_size(), 512);
};

TEST_F(MicroworldCheckTest, LossIsThatOfTheStoriesOneByOne) {
  const MicroworldCheck check =
      check_microworld(transformer, *tokenizer, {.stories = 6, .seed = 4, .batch_size = 4});
  double loss = 0;
  double log_probability = 0;
  const microworld::Microworld world(4);
  for (std::int64_t i = 0; i < 6; ++i) {
    const MarkedStory story = mark_story(world.story(i), *tokenizer);
    const auto size = std::ssize(story.tokens) - 1;
    EvaluationBuffers buffers(transformer.specification(), 1, size);
    loss +=
        transformer
            .loss({story.tokens.data(), {1, size}}, {story.tokens.data() + 1, {1, size}}, buffers)
            .sum;
    log_probability += story.log_probability;
  }
  EXPECT_NEAR(check.loss_nats_per_story, loss / 6, 1e-5 * loss);
  EXPECT_NEAR(check.entropy_nats_per_story, -log_probability / 6, 1e-9);
}

TEST_F(MicroworldCheckTest, DoesNotDependOnTheBatch) {
  const MicroworldCheck one =
      check_microworld(transformer, *tokenizer, {.stories = 20, .seed = 4, .batch_size = 1});
  const MicroworldCheck many =
      check_microworld(transformer, *tokenizer, {.stories = 20, .seed = 4, .batch_size = 7});
  EXPECT_NEAR(one.loss_nats_per_story, many.loss_nats_per_story, 1e-5 * one.loss_nats_per_story);
  EXPECT_NEAR(one.adjective_mass, many.adjective_mass, 1e-6);
  EXPECT_EQ(one.adjective_head, many.adjective_head);
  EXPECT_EQ(one.culprit_min_distance, many.culprit_min_distance);
  EXPECT_GT(one.adjective_nouns, 0);
}

TEST_F(MicroworldCheckTest, ReadsStoriesLongerThanTheContext) {
  const Transformer short_sighted = testing::small_gpt(tokenizer->vocabulary_size(), 64);
  const MicroworldCheck wide =
      check_microworld(transformer, *tokenizer, {.stories = 12, .seed = 4});
  const MicroworldCheck narrow =
      check_microworld(short_sighted, *tokenizer, {.stories = 12, .seed = 4});
  EXPECT_TRUE(std::isfinite(narrow.loss_nats_per_story));
  EXPECT_EQ(wide.sense_marks, narrow.sense_marks);
  EXPECT_EQ(wide.mysteries, narrow.mysteries);
}

TEST_F(MicroworldCheckTest, StopsOnRequest) {
  const std::atomic<bool> stop{true};
  try {
    check_microworld(transformer, *tokenizer, {.stories = 4, .stop = &stop});
    FAIL() << "did not stop";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::interrupted);
  }
  EXPECT_THROW(check_microworld(transformer, *tokenizer, {.stories = 1}), Error);
}

}  // namespace
}  // namespace heed
