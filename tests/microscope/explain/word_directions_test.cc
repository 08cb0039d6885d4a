#include "microscope/explain/word_directions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "microscope/families.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

Tensor<float> table_of(std::vector<std::vector<float>> rows) {
  Tensor<float> table(Shape{std::ssize(rows), std::ssize(rows.front())});
  for (std::int64_t row = 0; row < std::ssize(rows); ++row) {
    std::ranges::copy(rows[static_cast<std::size_t>(row)], table.view()[row].span().begin());
  }
  return table;
}

constexpr std::int64_t noisy_words = 400;
constexpr std::int64_t noisy_width = 48;

// Embeddings that share a large vector, as those of many models do.
Tensor<float> noisy_table() {
  Tensor<float> table(Shape{noisy_words, noisy_width});
  RandomStream random(3, 0);
  for (std::int64_t row = 0; row < noisy_words; ++row) {
    for (std::int64_t c = 0; c < noisy_width; ++c) {
      table.view()(row, c) = static_cast<float>(random.normal()) + (c < 4 ? 6.0F : 0.0F);
    }
  }
  return table;
}

TEST(NearestWords, HaveTheLargestCosinesLessTheMean) {
  // Less their mean (1, 1): (0, −1), (−1, 1), (2, 2), (−1, −2).
  const Tensor<float> words = table_of({{1, 0}, {0, 2}, {3, 3}, {0, -1}});
  const Tensor<float> vectors = table_of({{5, 5}, {5, 1}, {1, 1}});
  const std::vector<NearestWords> found = nearest_words(words, vectors, {.top = 2});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].best.token, 2);
  EXPECT_NEAR(found[0].best.cosine, 1, 1e-6);
  EXPECT_NEAR(found[1].best.cosine, 1 / std::numbers::sqrt2, 1e-6);  // (4, 0) and (2, 2)
  EXPECT_EQ(found[1].best.token, 2);
  EXPECT_EQ(found[2].best.cosine, 0);  // the mean has no direction
  // In two numbers there are only two orders, of which one is the vector's own: as near by chance.
  EXPECT_TRUE(found[0].words.empty());
  EXPECT_NEAR(found[0].chance, 1, 1e-6);
}

TEST(NearestWords, AreThoseThatAVectorIsMadeOf) {
  const Tensor<float> table = noisy_table();
  Tensor<float> mixed(Shape{1, noisy_width});
  for (std::int64_t c = 0; c < noisy_width; ++c) {
    mixed.view()(0, c) = (table.view()(7, c) + table.view()(90, c)) / 2;
  }
  const NearestWords found = nearest_words(table, mixed).front();
  ASSERT_GE(found.words.size(), 2U);  // and what lies near to one of them by chance
  const auto [first, second] = std::minmax(found.words[0].token, found.words[1].token);
  EXPECT_EQ(first, 7);
  EXPECT_EQ(second, 90);
  for (std::size_t i = 1; i < found.words.size(); ++i) {
    EXPECT_GE(found.words[i - 1].cosine, found.words[i].cosine);
    EXPECT_GT(found.words[i].cosine, found.chance);
  }
  EXPECT_GT(found.chance, 0.3);  // the largest of 400 · 39 cosines in 48 dimensions
}

// The word itself is left out, and a word that is not as near as chance does not take its place.
TEST(NearestWords, LeaveOutTheWordItself) {
  const Tensor<float> table = noisy_table();
  const View<const float> own = std::as_const(table).view().slice(0, 7, 8);
  const std::vector<NearestWords> with = nearest_words(table, own);
  EXPECT_EQ(with.front().best.token, 7);
  const NearestWords found = nearest_words(table, own, {.left_out = {7}}).front();
  EXPECT_NE(found.best.token, 7);
  for (const NearWord& word : found.words) EXPECT_NE(word.token, 7);
}

TEST(NearestWords, AreNoneForMostVectorsOfNoise) {
  const Tensor<float> table = noisy_table();
  Tensor<float> noise(Shape{200, noisy_width});
  RandomStream random(4, 0);
  for (std::int64_t row = 0; row < 200; ++row) {
    for (std::int64_t c = 0; c < noisy_width; ++c) {
      noise.view()(row, c) = static_cast<float>(random.normal()) + (c < 4 ? 6.0F : 0.0F);
    }
  }
  int named = 0, without_control = 0;
  for (const NearestWords& found : nearest_words(table, noise)) {
    named += found.words.empty() ? 0 : 1;
    without_control += found.best.cosine > 0.3 ? 1 : 0;
  }
  // Binomial(200, 1/40): 5 on average; more than 14 has probability 0.0002.
  EXPECT_LE(named, 14);
  EXPECT_GE(without_control, 100);  // what a bound without a control would name
}

TEST(NearestWords, AreNoneInATableWithoutVariation) {
  const Tensor<float> equal = table_of({{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.5F}});
  const NearestWords found = nearest_words(equal, table_of({{1, 2, 3}})).front();
  EXPECT_TRUE(found.words.empty());
  EXPECT_EQ(found.best.cosine, 0);
}

// 1,025 words are read in two parts.
TEST(NearestWords, AreFoundInEveryPartOfALargeVocabulary) {
  Tensor<float> table(Shape{1030, 8});
  RandomStream random(5, 0);
  for (float& value : table.span()) value = static_cast<float>(random.normal());
  for (const std::int64_t token : {0, 1023, 1024, 1029}) {
    const View<const float> own = std::as_const(table).view().slice(0, token, token + 1);
    EXPECT_EQ(nearest_words(table, own).front().best.token, token);
  }
}

TEST(NearestWords, OfATextLeaveTheOwnEmbeddingOutOnlyWhereItIsTheVector) {
  for (const testing::ToyFamily& family : testing::toy_families(16)) {
    const Transformer model = testing::random_transformer(family.stack);
    const RecordedPass pass(model, {.source = {}, .target = {5, 17, 4}});
    const NearestWordsByDepth found = nearest_words(pass, 1, 3);
    EXPECT_EQ(found.position, 1);
    ASSERT_EQ(found.points.size(), found.depths.size());
    EXPECT_EQ(found.points.front().kind, PointKind::embedding);
    EXPECT_NE(found.depths.front().best.token, 17) << family;
    Capture capture(found.points);
    pass.replay(capture);
    const std::vector<NearestWords> plain =
        nearest_words(model.parameters().token_embedding(), vectors_at(capture, 1), {.top = 3});
    EXPECT_EQ(plain.front().best.token, 17) << family;
    EXPECT_EQ(plain.back().best.token, found.depths.back().best.token) << family;
    EXPECT_EQ(plain.back().best.cosine, found.depths.back().best.cosine) << family;
  }
}

TEST(NearestWords, RefuseWhatCannotBeCompared) {
  const Tensor<float> one = table_of({{1, 2}}), two = table_of({{1, 2}, {3, 4}});
  EXPECT_THROW(nearest_words(one, one), Error);
  EXPECT_THROW(nearest_words(two, one, {.top = 0}), Error);
  const std::atomic<bool> stop = true;
  EXPECT_THROW(nearest_words(two, one, {.stop = &stop}), Error);
}

TEST(WordCosines, StandBesideTheMeanAndTheLargestOfOthers) {
  const Tensor<float> vectors = table_of({{1, 0}, {0, 2}, {0, 0}});
  const WordCosines found =
      word_cosines(vectors, table_of({{3, 0}, {1, 1}}), table_of({{0, 1}, {-1, 0}}));
  EXPECT_EQ(found.words[0], (std::vector<double>{1, 0, 0}));
  EXPECT_NEAR(found.words[1][0], 1 / std::numbers::sqrt2, 1e-12);
  EXPECT_EQ(found.others_mean, (std::vector<double>{-0.5, 0.5, 0}));
  EXPECT_EQ(found.others_largest, (std::vector<double>{0, 1, 0}));
}

TEST(WordCosines, OthersAreSpreadOverTheVocabulary) {
  using Tokens = std::vector<std::int32_t>;
  EXPECT_EQ(spread_tokens(100, 4, {}), (Tokens{12, 37, 62, 87}));
  EXPECT_EQ(spread_tokens(100, 4, Tokens{37, 5}), (Tokens{12, 62, 87}));
  EXPECT_EQ(spread_tokens(2, 32, {}), (Tokens{0, 1}));
}

// The stream's end points to the words that it makes likely: logit = row · normalised stream.
TEST(WordDirections, AreTheRowsThatTheModelMultipliesBy) {
  const Transformer model = testing::random_transformer(testing::toy_llama(16));
  const std::vector<std::int32_t> tokens = {9, 60};
  const RecordedPass pass(model, {.source = {}, .target = {5, 17, 4}});
  const Tensor<float> next = word_directions(model, tokens, WordDirection::next);
  const Tensor<float> read = word_directions(model, tokens, WordDirection::read);
  const Tensor<float> logits = pass.logits(2, 3);
  Capture capture(std::vector<Point>{{PointKind::final_normalized, -1}});
  pass.replay(capture);
  const std::span<const float> end = capture.at(capture.points()[0]).view()[0][2].span();
  for (std::int64_t row = 0; row < 2; ++row) {
    double logit = 0;
    for (std::int64_t c = 0; c < std::ssize(end); ++c) {
      logit += double{next.view()(row, c)} * end[c] * model.parameters().final_norm().gain(c);
      EXPECT_EQ(read.view()(row, c), model.parameters().token_embedding()(tokens[row], c));
    }
    EXPECT_NEAR(logit, logits.view()(0, tokens[row]), 1e-4 * std::abs(logit) + 1e-5);
  }
  EXPECT_THROW(word_directions(model, std::vector{61}, WordDirection::read), Error);
  EXPECT_THROW(word_directions(model, std::vector{-1}, WordDirection::next), Error);
}

}  // namespace
}  // namespace heed
