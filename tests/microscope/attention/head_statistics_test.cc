#include "microscope/attention/head_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "tensor/tensor.h"

namespace heed {
namespace {

constexpr std::int64_t pattern_size = 6;

template <class Weight>
Tensor<float> pattern_of(Weight&& weight) {
  Tensor<float> pattern(Shape{pattern_size, pattern_size});
  for (std::int64_t t = 0; t < pattern_size; ++t) {
    for (std::int64_t s = 0; s <= t; ++s) pattern.view()(t, s) = weight(t, s);
  }
  return pattern;
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
  const auto ranked = rank_heads({heads.view()});
  EXPECT_EQ(ranked.front().head, 1);
}

}  // namespace
}  // namespace heed
