#include "microscope/attention/head_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

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
  EXPECT_DOUBLE_EQ(previous.telling, 0);
}

TEST(HeadStatistics, AnEvenHeadHasTheLargestEntropy) {
  const auto even = head_statistics(pattern_of([](auto t, auto) { return 1.0F / (t + 1); }));
  EXPECT_NEAR(even.evenness, 1, 1e-6);
  EXPECT_EQ(strongest_habit(even).habit, HeadHabit::even);
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
