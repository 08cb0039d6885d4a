#include "microscope/attention/head_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "microscope/attention/head_scan.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/toy_pairs.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

using testing::toy_pair;
using testing::toy_translator;

constexpr std::int64_t pattern_size = 6;

template <class Weight>
Tensor<float> pattern_of(Weight&& weight) {
  Tensor<float> pattern(Shape{pattern_size, pattern_size});
  for (std::int64_t t = 0; t < pattern_size; ++t) {
    for (std::int64_t s = 0; s <= t; ++s) pattern.view()(t, s) = weight(t, s);
  }
  return pattern;
}

Tensor<float> plane(std::int64_t columns, const std::vector<float>& numbers) {
  Tensor<float> values(Shape{std::ssize(numbers) / columns, columns});
  std::ranges::copy(numbers, values.data());
  return values;
}

TEST(HeadStatistics, ClassifiesPurePatterns) {
  const auto first = head_statistics(pattern_of([](auto, auto s) { return s == 0; }));
  EXPECT_DOUBLE_EQ(first.first, 1);
  EXPECT_DOUBLE_EQ(first.entropy, 0);
  EXPECT_EQ(strongest_habit(first).habit, HeadHabit::first);

  const auto self = head_statistics(pattern_of([](auto t, auto s) { return s == t; }));
  EXPECT_DOUBLE_EQ(self.self, 1);
  EXPECT_DOUBLE_EQ(self.distance, 0);
  EXPECT_EQ(strongest_habit(self).habit, HeadHabit::self);

  const auto previous = head_statistics(
      pattern_of([](auto t, auto s) { return s == std::max<std::int64_t>(t - 1, 0); }));
  EXPECT_DOUBLE_EQ(previous.previous, 1);
  EXPECT_DOUBLE_EQ(previous.distance, 1);
  EXPECT_DOUBLE_EQ(previous.content_weight, 0);
}

TEST(HeadStatistics, AnEvenHeadHasTheLargestEntropy) {
  const auto even = head_statistics(pattern_of([](auto t, auto) { return 1.0F / (t + 1); }));
  EXPECT_NEAR(even.evenness, 1, 1e-6);
  EXPECT_EQ(strongest_habit(even).habit, HeadHabit::even);
}

// One rule for all views: 0.4 of the weight, an evenness of 0.9.
TEST(HeadHabits, AreNamedFromOneShareOn) {
  HeadStatistics statistics{.evenness = 0.93, .first = 0.34, .distance = 2.5};
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::even);
  statistics.first = 0.41;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::first);
  statistics.induction = 0.42;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::induction);
  const HeadHabitStrength back = strongest_habit(HeadStatistics{.evenness = 0.5, .distance = 2.5});
  EXPECT_EQ(back.habit, HeadHabit::back);
  EXPECT_EQ(back.strength, 2.5);
  EXPECT_EQ(habit_name(HeadHabit::previous), "previous");
}

TEST(HeadStatistics, KnowCopiesWhereTokensAreGiven) {
  const std::int32_t tokens[] = {7, 8, 9, 7, 8, 9};
  const auto induction = head_statistics(
      pattern_of([](auto t, auto s) { return s == (t < 3 ? 0 : t - 2) ? 1.0F : 0.0F; }), 0, tokens);
  EXPECT_DOUBLE_EQ(induction.induction, 1);
  EXPECT_DOUBLE_EQ(induction.duplicate, 0);
  const auto duplicate = head_statistics(
      pattern_of([](auto t, auto s) { return s == (t < 3 ? 0 : t - 3) ? 1.0F : 0.0F; }), 0, tokens);
  EXPECT_DOUBLE_EQ(duplicate.duplicate, 1);
  EXPECT_THROW(head_statistics(pattern_of([](auto, auto s) { return s == 0 ? 1.0F : 0.0F; }), 0,
                               std::span(tokens).first(3)),
               Error);
}

TEST(RankHeads, PrefersSelectiveHeads) {
  Tensor<float> heads(Shape{2, pattern_size, pattern_size});
  for (std::int64_t t = 0; t < pattern_size; ++t) {
    heads.view()(0, t, t) = 1;
    heads.view()(1, t, t < 3 ? 0 : 1) = 1;  // all later tokens attend to token 1
  }
  std::vector<RankedHead> ranked;
  for (const std::int64_t head : {0, 1}) {
    ranked.push_back({.head = head, .statistics = head_statistics(heads.view()[head])});
  }
  rank_heads(ranked);
  EXPECT_EQ(ranked.front().head, 1);
}

TEST(HeadStatistics, AreThoseOfTheRowsOfEveryScope) {
  const Tensor<float> pattern = plane(3, {0.5F, 0.5F, 0, 0, 0, 1, 0.25F, 0.5F, 0.25F});
  const HeadStatistics encoder = head_statistics(pattern, 0, {}, AttentionScope::both_ways);
  EXPECT_NEAR(encoder.self, (0.5 + 0 + 0.25) / 3, 1e-12);
  EXPECT_NEAR(encoder.next, (0.5 + 1) / 3, 1e-12);
  EXPECT_NEAR(encoder.previous, 0.5 / 3, 1e-12);
  EXPECT_NEAR(encoder.distance, (0.5 + 1 + 0.5 + 0.5) / 3, 1e-12);
  EXPECT_NEAR(encoder.largest, 2.0 / 3, 1e-12);
  EXPECT_NEAR(encoder.last, 1.25 / 3, 1e-12);
  EXPECT_NEAR(encoder.entropy, (std::log(2) + 1.5 * std::log(2)) / 3, 1e-7);
  const HeadStatistics cross = head_statistics(pattern, 0, {}, AttentionScope::other_text);
  EXPECT_EQ(cross.self, 0);
  EXPECT_EQ(cross.distance, 0);
  EXPECT_NEAR(cross.evenness, 2.5 * std::log(2) / std::log(3) / 3, 1e-7);
  // The first row of a causal pattern sees one key and says nothing.
  const HeadStatistics decoder = head_statistics(plane(3, {1, 0, 0, 0.5F, 0.5F, 0, 0, 0, 1}));
  EXPECT_NEAR(decoder.self, 0.75, 1e-12);
  EXPECT_NEAR(decoder.last, 0.75, 1e-12);
  EXPECT_NEAR(decoder.evenness, 0.5, 1e-7);
  // Copies lie on both sides: token 0 is another copy of token 2, and token 1 follows it.
  const std::int32_t tokens[] = {7, 8, 7};
  const HeadStatistics copies = head_statistics(pattern, 0, tokens, AttentionScope::both_ways);
  EXPECT_NEAR(copies.duplicate, (0 + 0.25) / 2, 1e-12);
  EXPECT_NEAR(copies.induction, (0 + 0.5) / 2, 1e-12);
  for (const char* const name :
       {"self", "previous", "next", "distance", "duplicate", "induction"}) {
    EXPECT_FALSE(has_statistic(AttentionScope::other_text, *find_head_statistic(name))) << name;
  }
  EXPECT_FALSE(has_statistic(AttentionScope::past, *find_head_statistic("next")));
  EXPECT_FALSE(has_statistic(AttentionScope::both_ways, *find_head_statistic("content_weight")));
}

TEST(HeadHabits, AreThoseThatTheScopeHas) {
  HeadStatistics statistics{.scope = AttentionScope::both_ways,
                            .evenness = 0.5,
                            .largest = 0.7,
                            .last = 0.5,
                            .next = 0.6};
  statistics.distance = 1.5;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::next);
  statistics.scope = AttentionScope::other_text;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::last);
  statistics.scope = AttentionScope::past;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::back);
  statistics.scope = AttentionScope::other_text;
  statistics.last = 0.3;
  EXPECT_EQ(strongest_habit(statistics).habit, HeadHabit::peak);
}

TEST(HeadStatistics, OfEveryHeadOfAPair) {
  const Transformer model = toy_translator();
  const RecordedPass pass(model, toy_pair());
  EXPECT_EQ(scan_heads(pass, {encoder_site}).all().size(), 12U);
  const HeadScan scan = scan_heads(pass);
  EXPECT_EQ(scan.all().size(), 28U);
  const std::vector<RankedHead> cross = scan_heads(pass, {cross_site}).all();
  ASSERT_EQ(cross.size(), 8U);
  EXPECT_EQ(cross[6].layer, 1);
  EXPECT_EQ(cross[6].head, 2);
  double first = 0;
  for (std::int64_t t = 0; t < 5; ++t) {
    first += RecordedAttention(pass).layer(cross_site, 1).row(1, 2, t).front() / 5;
  }
  EXPECT_NEAR(cross[6].statistics.first, first, 1e-6);
  // Every number of the scan against that of the whole pattern.
  RecordedAttention attention(pass);
  for (const RankedHead& head : scan.all()) {
    const bool is_source = head.site == encoder_site;
    const std::vector<std::int32_t>& tokens = is_source ? toy_pair().source : toy_pair().target;
    const HeadStatistics expected = head_statistics(
        attention.pattern(head.site, head.layer, head.head), 0,
        head.site == cross_site ? std::span<const std::int32_t>{} : std::span(tokens),
        attention_scope(model.architecture(), head.site));
    for (const HeadStatistic& statistic : head_statistics_table()) {
      EXPECT_NEAR(head.statistics.*statistic.value, expected.*statistic.value, 1e-5)
          << site_name(head.site) << " " << statistic.name;
    }
  }
}

}  // namespace
}  // namespace heed
