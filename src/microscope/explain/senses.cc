#include "microscope/explain/senses.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

constexpr std::uint64_t shuffle_seed = 40;
constexpr double apart_level = 0.01;
constexpr double clear_level = 0.05;
constexpr double share_of_usual = 0.5;
constexpr double share_above_high = 0.05;
// Vectors that differ by less than rounding in f32 are the same.
constexpr double rounding = 1e-6;
constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

// Calls visit(senses) with `senses` in SenseVectors::shuffles random orders, always the same.
template <class Visit>
void for_each_shuffle(std::vector<std::size_t> senses, const Visit& visit) {
  RandomStream random(shuffle_seed, 0);
  for (int shuffle = 0; shuffle < SenseVectors::shuffles; ++shuffle) {
    for (std::size_t i = senses.size() - 1; i > 0; --i) {
      std::swap(senses[i], senses[random.below(i + 1)]);
    }
    visit(senses);
  }
}

double share_with_the_real_one(int reached) {
  return (1.0 + reached) / (1.0 + SenseVectors::shuffles);
}

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

struct PairMeans {
  double same = 0;
  double other = 0;
};

PairMeans pair_means(std::span<const double> cosines, std::span<const std::size_t> senses) {
  double same = 0, other = 0;
  std::int64_t same_count = 0, other_count = 0;
  for (std::size_t i = 0; i < senses.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double value = cosines[i * senses.size() + j];
      const bool is_same = senses[i] == senses[j];
      (is_same ? same : other) += value;
      ++(is_same ? same_count : other_count);
    }
  }
  return {same / static_cast<double>(same_count), other / static_cast<double>(other_count)};
}

}  // namespace

bool SenseSeparation::apart() const { return !identical && p <= apart_level; }

double most_apart_p(std::span<const SenseSeparation> depths) {
  double largest = -std::numeric_limits<double>::infinity();
  std::vector<double> of_shuffles(SenseVectors::shuffles, largest);
  for (const SenseSeparation& depth : depths) {
    if (depth.identical) continue;
    double squares = 0;
    for (const double difference : depth.shuffled_differences) squares += difference * difference;
    const double deviation = std::sqrt(squares / SenseVectors::shuffles);
    largest = std::max(largest, (depth.same - depth.other) / deviation);
    for (std::size_t i = 0; i < of_shuffles.size(); ++i) {
      of_shuffles[i] = std::max(of_shuffles[i], depth.shuffled_differences[i] / deviation);
    }
  }
  if (!std::isfinite(largest)) return 1;
  return share_with_the_real_one(static_cast<int>(
      std::ranges::count_if(of_shuffles, [&](double one) { return one >= largest; })));
}

SenseVectors::SenseVectors(View<const float> vectors, std::vector<std::size_t> senses)
    : senses_(std::move(senses)), plane_(principal_plane(vectors)) {
  check(static_cast<std::size_t>(vectors.extent(0)) == senses_.size(), "each vector has a sense");
  sense_count_ = *std::ranges::max_element(senses_) + 1;
  for (std::size_t sense = 0; sense < sense_count_; ++sense) {
    require(std::ranges::count(senses_, sense) >= 2, ErrorCode::invalid_argument,
            "sense {} has fewer than two sentences", sense);
  }
  require(sense_count_ >= 2, ErrorCode::invalid_argument, "one sense cannot be told from others");
  double spread = 0;
  for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
    double square = 0, distance = 0;
    for (std::int64_t c = 0; c < vectors.extent(1); ++c) {
      const double value = vectors(i, c);
      const double difference = value - plane_.mean[static_cast<std::size_t>(c)];
      square += value * value;
      distance += difference * difference;
    }
    mean_length_ += std::sqrt(square) / static_cast<double>(senses_.size());
    spread = std::max(spread, std::sqrt(distance));
  }
  identical_ = spread <= rounding * mean_length_;
  for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
    directions_.push_back(direction(vectors[i].span()));
  }
  for (const std::vector<double>& a : directions_) {
    for (const std::vector<double>& b : directions_) cosines_.push_back(product(a, b));
  }
}

std::vector<double> SenseVectors::direction(std::span<const float> vector) const {
  std::vector<double> unit(vector.size(), 0.0);
  for (std::size_t c = 0; c < unit.size(); ++c) unit[c] = vector[c] - plane_.mean[c];
  const double length = std::sqrt(product(unit, unit));
  for (double& value : unit) value = length > rounding * mean_length_ ? value / length : 0.0;
  return unit;
}

SenseSeparation SenseVectors::separation() const {
  if (identical_) return {.identical = true};
  const PairMeans real = pair_means(cosines_, senses_);
  SenseSeparation result{.same = real.same, .other = real.other};
  std::vector<double> shuffled;
  int reached = 0;
  for_each_shuffle(senses_, [&](std::span<const std::size_t> senses) {
    const PairMeans means = pair_means(cosines_, senses);
    shuffled.push_back(means.same);
    result.shuffled_differences.push_back(means.same - means.other);
    reached += result.shuffled_differences.back() >= real.same - real.other;
  });
  result.p = share_with_the_real_one(reached);
  result.shuffled_same =
      std::accumulate(shuffled.begin(), shuffled.end(), 0.0) / static_cast<double>(shuffles);
  std::ranges::sort(shuffled);
  result.shuffled_high = shuffled[static_cast<std::size_t>((1 - share_above_high) * shuffles)];
  return result;
}

SenseVectors::Margin SenseVectors::margin(std::span<const double> cosines,
                                          std::span<const std::size_t> senses,
                                          std::size_t left_out) const {
  std::vector<double> sums(sense_count_, 0.0);
  std::vector<int> counts(sense_count_, 0);
  for (std::size_t i = 0; i < senses.size(); ++i) {
    if (i == left_out) continue;
    sums[senses[i]] += cosines[i];
    ++counts[senses[i]];
  }
  for (std::size_t sense = 0; sense < sense_count_; ++sense) sums[sense] /= counts[sense];
  Margin best{.sense = static_cast<std::size_t>(std::ranges::max_element(sums) - sums.begin())};
  std::ranges::nth_element(sums, sums.begin() + 1, std::greater{});
  best.value = sums[0] - sums[1];
  return best;
}

NearestSense SenseVectors::nearest(std::span<const float> vector) const {
  const std::vector<double> unit = direction(vector);
  std::vector<double> cosines;
  for (const std::vector<double>& each : directions_) cosines.push_back(product(unit, each));
  const Margin found = margin(cosines, senses_, nobody);
  NearestSense nearest{.sense = found.sense, .margin = found.value};
  if (identical_) return nearest;
  int reached = 0;
  for_each_shuffle(senses_, [&](std::span<const std::size_t> senses) {
    reached += margin(cosines, senses, nobody).value >= found.value;
  });
  nearest.p = share_with_the_real_one(reached);

  std::vector<double> of_its_own;
  double max_of_others = 0;
  for (std::size_t i = 0; i < senses_.size(); ++i) {
    const auto row = std::span(cosines_).subspan(i * senses_.size(), senses_.size());
    const Margin one = margin(row, senses_, i);
    if (one.sense != found.sense) continue;
    if (senses_[i] == found.sense) {
      of_its_own.push_back(one.value);
    } else {
      max_of_others = std::max(max_of_others, one.value);
    }
  }
  std::ranges::sort(of_its_own);
  const double usual = of_its_own.empty() ? std::numeric_limits<double>::infinity()
                                          : of_its_own[of_its_own.size() / 2];
  nearest.least = std::max(share_of_usual * usual, max_of_others);
  nearest.is_clear = nearest.p <= clear_level && nearest.margin >= nearest.least;
  return nearest;
}

}  // namespace heed
