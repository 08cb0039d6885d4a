#include "microscope/attention/pair_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "microscope/toy_pairs.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::toy_pair;
using testing::toy_translator;

Tensor<float> plane(std::int64_t columns, const std::vector<float>& numbers) {
  Tensor<float> values(Shape{std::ssize(numbers) / columns, columns});
  std::ranges::copy(numbers, values.data());
  return values;
}

TEST(PairStatistics, AreThoseOfTheRows) {
  const Tensor<float> pattern = plane(3, {0.5F, 0.5F, 0, 0, 0, 1, 0.25F, 0.5F, 0.25F});
  const PairHeadStatistics encoder = pair_head_statistics(pattern, encoder_site);
  EXPECT_NEAR(encoder.self, (0.5 + 0 + 0.25) / 3, 1e-12);
  EXPECT_NEAR(encoder.next, (0.5 + 1) / 3, 1e-12);
  EXPECT_NEAR(encoder.previous, 0.5 / 3, 1e-12);
  EXPECT_NEAR(encoder.distance, (0.5 + 1 + 0.5 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(encoder.largest, 2.0 / 3, 1e-12);
  EXPECT_NEAR(encoder.last, 1.25 / 3, 1e-12);
  EXPECT_NEAR(encoder.entropy, (std::log(2) + 1.5 * std::log(2)) / 3, 1e-7);
  const PairHeadStatistics cross = pair_head_statistics(pattern, cross_site);
  EXPECT_EQ(cross.self, 0);
  EXPECT_EQ(cross.distance, 0);
  EXPECT_NEAR(cross.evenness, 2.5 * std::log(2) / std::log(3) / 3, 1e-7);
  // The first row of a causal pattern sees one key and says nothing.
  const PairHeadStatistics decoder =
      pair_head_statistics(plane(3, {1, 0, 0, 0.5F, 0.5F, 0, 0, 0, 1}), decoder_site);
  EXPECT_NEAR(decoder.self, 0.75, 1e-12);
  EXPECT_NEAR(decoder.last, 0.75, 1e-12);
  EXPECT_NEAR(decoder.evenness, 0.5, 1e-7);
}

TEST(PairStatistics, NameHabitsThatTheKindHas) {
  PairHeadStatistics statistics{.evenness = 0.5, .largest = 0.7, .last = 0.5, .next = 0.6};
  statistics.distance = 1.5;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::next);
  statistics.kind = cross_site;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::last);
  statistics.kind = decoder_site;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::back);
  statistics.kind = cross_site;
  statistics.last = 0.3;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::peak);
}

TEST(PairStatistics, OfEveryHead) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  RecordedAttention attention(pass);
  EXPECT_EQ(pair_statistics(pass, attention, encoder_site).size(), 12U);
  const auto cross = pair_statistics(pass, attention, cross_site);
  ASSERT_EQ(cross.size(), 8U);
  EXPECT_EQ(cross[6].layer, 1);
  EXPECT_EQ(cross[6].head, 2);
  double first = 0;
  for (std::int64_t t = 0; t < 5; ++t) {
    first += RecordedAttention(pass).layer(cross_site, 1).row(1, 2, t).front() / 5;
  }
  EXPECT_NEAR(cross[6].first, first, 1e-6);
}

// Against a truth made of what one head attends to most: that head makes no error.
TEST(PairStatistics, AHeadAlignsWhatItAttendsTo) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  RecordedAttention attention(pass);
  const std::vector<TextWord> source{{"a", 0, 2}, {"b", 2, 3}, {"c", 3, 6}, {"", 6, 7}};
  const std::vector<TextWord> target{{"", 0, 1}, {"x", 1, 3}, {"y", 3, 4}, {"z", 4, 5}};
  const PairWords words{source, target};
  for (const WordRow row : {WordRow::read, WordRow::written}) {
    const auto links = aligned_words(cross_by_words(pass, attention, {1, 2}, words, row));
    scoring::TrueAlignment truth;
    for (const AlignedWord& link : links) {
      if (link.target == 0) continue;
      truth.sure.push_back(
          {static_cast<std::int32_t>(link.source), static_cast<std::int32_t>(link.target)});
    }
    for (const HeadAlignment& head : head_alignments(pass, attention, words, truth, row)) {
      const auto own =
          aligned_words(cross_by_words(pass, attention, {head.layer, head.head}, words, row));
      int wrong = 0;
      for (std::size_t t = 1; t < own.size(); ++t) wrong += own[t].source != links[t].source;
      EXPECT_NEAR(head.counts.error_rate(), wrong / 3.0, 1e-12);
      if (head.layer == 1 && head.head == 2) {
        EXPECT_EQ(wrong, 0);
      }
    }
  }
  const Tensor<float> mean = cross_by_words(pass, attention, {1, {}}, words, WordRow::read);
  double sum = 0;
  for (const float weight : mean.view()[2].span()) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-5);
  expect_error(
      ErrorCode::invalid_argument,
      [&] {
        head_alignments(pass, attention, words, {.sure = {{4, 0}}, .possible = {}}, WordRow::read);
      },
      "source word 4");
}

}  // namespace
}  // namespace heed
