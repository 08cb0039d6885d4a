#include "microscope/attention/head_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace heed {
namespace {

// Habits weaker than these do not characterise a head.
constexpr double characteristic_share = 0.4;
constexpr double characteristic_evenness = 0.9;

using Unit = HeadStatistic::Unit;

constexpr std::array<HeadStatistic, 12> statistics_by_name{
    {{"entropy", &HeadStatistics::entropy, Unit::number, "entropy of a row, in nats"},
     {"evenness", &HeadStatistics::evenness, Unit::share,
      "entropy, as a share of uniform attention's"},
     {"distance", &HeadStatistics::distance, Unit::number, "mean distance in tokens"},
     {"first", &HeadStatistics::first, Unit::share, "weight on the first token"},
     {"last", &HeadStatistics::last, Unit::share, "weight on the last token that is seen"},
     {"self", &HeadStatistics::self, Unit::share, "weight on the token itself"},
     {"previous", &HeadStatistics::previous, Unit::share, "weight on the previous token"},
     {"next", &HeadStatistics::next, Unit::share, "weight on the next token"},
     {"duplicate", &HeadStatistics::duplicate, Unit::share,
      "weight on other copies of the token, if any"},
     {"induction", &HeadStatistics::induction, Unit::share,
      "weight on the tokens after other copies of the token, if any"},
     {"largest", &HeadStatistics::largest, Unit::share, "largest weight of a row"},
     {"content_weight", &HeadStatistics::content_weight, Unit::share,
      "largest weight on a token further back"}}};

}  // namespace

AttentionScope attention_scope(const Architecture& architecture, AttentionSite site) {
  if (site.kind == AttentionKind::cross) return AttentionScope::other_text;
  return attention_of(architecture, site).mask.kind == MaskKind::full ? AttentionScope::both_ways
                                                                      : AttentionScope::past;
}

std::span<const HeadStatistic> head_statistics_table() { return statistics_by_name; }

const HeadStatistic* find_head_statistic(std::string_view name) {
  const auto found = std::ranges::find(statistics_by_name, name, &HeadStatistic::name);
  return found == statistics_by_name.end() ? nullptr : &*found;
}

bool has_statistic(AttentionScope scope, const HeadStatistic& statistic) {
  const auto is = [&](double HeadStatistics::*value) { return statistic.value == value; };
  if (is(&HeadStatistics::next)) return scope == AttentionScope::both_ways;
  if (is(&HeadStatistics::content_weight)) return scope == AttentionScope::past;
  const bool within_one_text = is(&HeadStatistics::self) || is(&HeadStatistics::previous) ||
                               is(&HeadStatistics::distance) || is(&HeadStatistics::duplicate) ||
                               is(&HeadStatistics::induction);
  return !within_one_text || scope != AttentionScope::other_text;
}

double evenness_of(double entropy, std::int64_t keys) {
  return keys > 1 ? entropy / std::log(static_cast<double>(keys)) : 1.0;
}

void HeadStatisticsSum::add_to(HeadStatistics& sums, const HeadStatistics& row) {
  for (const HeadStatistic& statistic : statistics_by_name) {
    sums.*statistic.value += row.*statistic.value;
  }
}

void HeadStatisticsSum::add_row(std::span<const float> weights, std::int64_t query,
                                const VisibleKeys& seen) {
  const AttentionScope scope = sums_.scope;
  const auto is_copy = [&](std::int64_t s) {
    return !tokens_.empty() &&
           tokens_[static_cast<std::size_t>(s)] == tokens_[static_cast<std::size_t>(query)];
  };
  HeadStatistics row;
  bool has_copy = false;
  // Tokens that a window hides have a weight of zero, and may be copies.
  for (std::int64_t s = 0; s < seen.end; ++s) {
    const double weight = weights[static_cast<std::size_t>(s)];
    if (weight > 0) row.entropy -= weight * std::log(weight);
    row.largest = std::max(row.largest, weight);
    if (scope == AttentionScope::other_text) continue;
    row.distance += weight * static_cast<double>(std::abs(query - s));
    if (s == query) row.self += weight;
    if (s == query - 1) row.previous += weight;
    if (s == query + 1) row.next += weight;
    if (s != query && is_copy(s)) {
      row.duplicate += weight;
      has_copy = true;
    }
    if (s > 0 && s - 1 != query && is_copy(s - 1)) row.induction += weight;
    if (scope == AttentionScope::past && s > 0 && s < query - 1) {
      row.content_weight = std::max(row.content_weight, weight);
    }
  }
  row.evenness = evenness_of(row.entropy, seen.count());
  row.first = weights.front();
  row.last = weights[static_cast<std::size_t>(seen.end - 1)];
  add(row);
  if (has_copy) add_repeated(1);
}

HeadStatistics HeadStatisticsSum::means() const {
  HeadStatistics means = sums_;
  for (const HeadStatistic& statistic : statistics_by_name) {
    const bool of_copies = statistic.value == &HeadStatistics::duplicate ||
                           statistic.value == &HeadStatistics::induction;
    means.*statistic.value /=
        static_cast<double>(std::max<std::int64_t>(of_copies ? repeated_ : rows_, 1));
  }
  return means;
}

HeadStatistics head_statistics(View<const float> pattern, std::int64_t window,
                               std::span<const std::int32_t> tokens, AttentionScope scope) {
  const std::int64_t queries = pattern.extent(0), keys = pattern.extent(1);
  require(tokens.empty() || std::ssize(tokens) == queries, ErrorCode::invalid_argument,
          "{} tokens for a pattern of {} positions", tokens.size(), queries);
  const bool is_past = scope == AttentionScope::past;
  HeadStatisticsSum sum(scope, tokens);
  for (std::int64_t t = is_past ? 1 : 0; t < queries; ++t) {
    VisibleKeys seen{0, is_past ? t + 1 : keys};
    if (is_past && window > 0) seen.begin = std::max<std::int64_t>(t + 1 - window, 0);
    sum.add_row(pattern[t].span(), t, seen);
  }
  return sum.means();
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

HeadHabitStrength strongest_habit(const HeadStatistics& statistics) {
  const bool is_past = statistics.scope == AttentionScope::past;
  std::vector<HeadHabitStrength> shares;
  if (statistics.scope != AttentionScope::other_text) {
    shares = {{HeadHabit::induction, statistics.induction},
              {HeadHabit::duplicate, statistics.duplicate},
              {HeadHabit::previous, statistics.previous},
              {HeadHabit::self, statistics.self}};
  }
  shares.push_back({HeadHabit::first, statistics.first});
  if (!is_past) shares.push_back({HeadHabit::last, statistics.last});
  if (statistics.scope == AttentionScope::both_ways) {
    shares.push_back({HeadHabit::next, statistics.next});
  }
  const auto& largest = *std::ranges::max_element(shares, {}, &HeadHabitStrength::strength);
  if (largest.strength >= characteristic_share) return largest;
  if (statistics.evenness >= characteristic_evenness) {
    return {HeadHabit::even, statistics.evenness};
  }
  return is_past ? HeadHabitStrength{HeadHabit::back, statistics.distance}
                 : HeadHabitStrength{HeadHabit::peak, statistics.largest};
}

void rank_heads(std::vector<RankedHead>& heads) {
  const bool past_alone = std::ranges::all_of(heads, [](const RankedHead& head) {
    return head.statistics.scope == AttentionScope::past && head.site == only_site;
  });
  const auto by = past_alone ? &HeadStatistics::content_weight : &HeadStatistics::largest;
  std::ranges::stable_sort(heads, std::greater{},
                           [&](const RankedHead& head) { return head.statistics.*by; });
}

}  // namespace heed
