#include "microscope/attention/head_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace heed {
namespace {

// Habits weaker than these do not characterise a head.
constexpr double characteristic_share = 0.4;
constexpr double characteristic_evenness = 0.9;

}  // namespace

double evenness_of(double entropy, std::int64_t keys) {
  return keys > 1 ? entropy / std::log(static_cast<double>(keys)) : 1.0;
}

HeadStatistics head_statistics(View<const float> pattern, std::int64_t window,
                               std::span<const std::int32_t> tokens) {
  const std::int64_t positions = pattern.extent(0);
  require(tokens.empty() || std::ssize(tokens) == positions, ErrorCode::invalid_argument,
          "{} tokens for a pattern of {} positions", tokens.size(), positions);
  const auto is_copy = [&](std::int64_t s, std::int64_t t) {
    return !tokens.empty() &&
           tokens[static_cast<std::size_t>(s)] == tokens[static_cast<std::size_t>(t)];
  };
  HeadStatistics sums;
  std::int64_t repeated = 0;
  for (std::int64_t t = 1; t < positions; ++t) {
    double entropy = 0;
    double content_weight = 0;
    bool occurred_before = false;
    for (std::int64_t s = 0; s <= t; ++s) {
      const double weight = pattern(t, s);
      if (weight > 0) entropy -= weight * std::log(weight);
      sums.distance += weight * static_cast<double>(t - s);
      if (s > 0 && s < t - 1) content_weight = std::max(content_weight, weight);
      if (s < t && is_copy(s, t)) {
        sums.duplicate += weight;
        occurred_before = true;
      }
      if (s > 0 && is_copy(s - 1, t)) sums.induction += weight;
    }
    sums.entropy += entropy;
    sums.evenness += evenness_of(entropy, window > 0 ? std::min(window, t + 1) : t + 1);
    sums.first += pattern(t, 0);
    sums.self += pattern(t, t);
    sums.previous += pattern(t, t - 1);
    sums.content_weight += content_weight;
    repeated += occurred_before ? 1 : 0;
  }
  return mean_statistics(sums, positions - 1, repeated);
}

HeadStatistics mean_statistics(const HeadStatistics& sums, std::int64_t rows,
                               std::int64_t repeated) {
  HeadStatistics means = sums;
  for (double* sum : {&means.entropy, &means.evenness, &means.first, &means.self, &means.previous,
                      &means.distance, &means.content_weight}) {
    *sum /= static_cast<double>(std::max<std::int64_t>(rows, 1));
  }
  for (double* sum : {&means.duplicate, &means.induction}) {
    *sum /= static_cast<double>(std::max<std::int64_t>(repeated, 1));
  }
  return means;
}

std::string_view habit_name(HeadHabit habit) {
  switch (habit) {
    case HeadHabit::first: return "first";
    case HeadHabit::last: return "last";
    case HeadHabit::self: return "self";
    case HeadHabit::previous: return "previous";
    case HeadHabit::next: return "next";
    case HeadHabit::duplicate: return "duplicate";
    case HeadHabit::induction: return "induction";
    case HeadHabit::even: return "even";
    case HeadHabit::back: return "back";
    case HeadHabit::peak: break;
  }
  return "peak";
}

HeadHabitStrength strongest_habit(std::span<const HeadHabitStrength> shares, double evenness,
                                  const HeadHabitStrength& otherwise) {
  const auto& largest = *std::ranges::max_element(shares, {}, &HeadHabitStrength::strength);
  if (largest.strength >= characteristic_share) return largest;
  if (evenness >= characteristic_evenness) return {HeadHabit::even, evenness};
  return otherwise;
}

HeadHabitStrength strongest_habit(const HeadStatistics& statistics) {
  const HeadHabitStrength shares[] = {{HeadHabit::induction, statistics.induction},
                                      {HeadHabit::duplicate, statistics.duplicate},
                                      {HeadHabit::previous, statistics.previous},
                                      {HeadHabit::self, statistics.self},
                                      {HeadHabit::first, statistics.first}};
  return strongest_habit(shares, statistics.evenness, {HeadHabit::back, statistics.distance});
}

std::vector<RankedHead> rank_heads(const std::vector<View<const float>>& patterns,
                                   const AttentionSpecification& attention,
                                   std::span<const std::int32_t> tokens) {
  std::vector<RankedHead> heads;
  for (std::size_t layer = 0; layer < patterns.size(); ++layer) {
    for (std::int64_t head = 0; head < patterns[layer].extent(0); ++head) {
      const auto number = static_cast<std::int64_t>(layer);
      heads.push_back(
          {.layer = number,
           .head = head,
           .statistics = head_statistics(patterns[layer][head], attention.window(number), tokens)});
    }
  }
  std::ranges::stable_sort(heads, std::greater{},
                           [](const RankedHead& head) { return head.statistics.content_weight; });
  return heads;
}

}  // namespace heed
