#include "microscope/attention/head_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace heed {
namespace {

// Behaviours weaker than these do not characterise a head.
constexpr double dominant_share = 0.45;
constexpr double plain_mean_evenness = 0.9;

template <class Score>
std::vector<RankedHead> rank_by(const std::vector<View<const float>>& patterns,
                                const AttentionSpecification& attention, Score&& score) {
  std::vector<RankedHead> heads;
  for (std::size_t layer = 0; layer < patterns.size(); ++layer) {
    for (std::int64_t head = 0; head < patterns[layer].extent(0); ++head) {
      const View<const float> pattern = patterns[layer][head];
      const auto ranked_layer = static_cast<std::int64_t>(layer);
      RankedHead ranked{.layer = ranked_layer,
                        .head = head,
                        .statistics = head_statistics(pattern, attention.window(ranked_layer))};
      ranked.score = score(pattern, ranked.statistics);
      heads.push_back(ranked);
    }
  }
  std::ranges::stable_sort(heads, std::greater{}, &RankedHead::score);
  return heads;
}

}  // namespace

double evenness_of(double entropy, std::int64_t keys) {
  return keys > 1 ? entropy / std::log(static_cast<double>(keys)) : 1.0;
}

HeadStatistics head_statistics(View<const float> pattern, std::int64_t window) {
  const std::int64_t positions = pattern.extent(0);
  HeadStatistics sums;
  for (std::int64_t t = 1; t < positions; ++t) {
    double entropy = 0;
    double farthest_pick = 0;
    for (std::int64_t s = 0; s <= t; ++s) {
      const double weight = pattern(t, s);
      if (weight > 0) entropy -= weight * std::log(weight);
      sums.distance += weight * static_cast<double>(t - s);
      if (s > 0 && s < t - 1) farthest_pick = std::max(farthest_pick, weight);
    }
    sums.entropy += entropy;
    sums.evenness += evenness_of(entropy, window > 0 ? std::min(window, t + 1) : t + 1);
    sums.first += pattern(t, 0);
    sums.self += pattern(t, t);
    sums.previous += pattern(t, t - 1);
    sums.telling += farthest_pick;
  }
  return mean_statistics(sums, positions - 1, 0);
}

HeadStatistics mean_statistics(const HeadStatistics& sums, std::int64_t rows,
                               std::int64_t repeated) {
  HeadStatistics means = sums;
  for (double* sum : {&means.entropy, &means.evenness, &means.first, &means.self, &means.previous,
                      &means.distance, &means.telling}) {
    *sum /= static_cast<double>(std::max<std::int64_t>(rows, 1));
  }
  for (double* sum : {&means.duplicate, &means.induction}) {
    *sum /= static_cast<double>(std::max<std::int64_t>(repeated, 1));
  }
  return means;
}

HeadHabitStrength strongest_habit(const HeadStatistics& statistics) {
  const HeadHabitStrength shares[] = {{HeadHabit::first, statistics.first},
                                      {HeadHabit::self, statistics.self},
                                      {HeadHabit::previous, statistics.previous}};
  const auto& largest = *std::ranges::max_element(shares, {}, &HeadHabitStrength::strength);
  if (largest.strength >= dominant_share) return largest;
  if (statistics.evenness >= plain_mean_evenness) return {HeadHabit::even, statistics.evenness};
  return {HeadHabit::far, statistics.distance};
}

std::vector<RankedHead> rank_heads(const std::vector<View<const float>>& patterns,
                                   const AttentionSpecification& attention) {
  return rank_by(patterns, attention, [](View<const float>, const HeadStatistics& statistics) {
    return statistics.telling;
  });
}

}  // namespace heed
