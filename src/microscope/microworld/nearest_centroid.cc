#include "microscope/microworld/nearest_centroid.h"

#include <array>
#include <cstdint>
#include <limits>

namespace heed {
namespace {

struct Centroid {
  std::vector<double> sum;
  std::int64_t count = 0;

  void add(const std::vector<float>& vector) {
    sum.resize(vector.size(), 0.0);
    for (std::size_t i = 0; i < vector.size(); ++i) sum[i] += vector[i];
    ++count;
  }
  double squared_distance(const std::vector<float>& vector) const {
    double total = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) {
      const double difference = vector[i] - sum[i] / static_cast<double>(count);
      total += difference * difference;
    }
    return total;
  }
};

using Centroids = std::map<std::string, Centroid>;  // by sense

const std::string& nearest(const Centroids& centroids, const std::vector<float>& vector) {
  const std::string* best = nullptr;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const auto& [sense, centroid] : centroids) {
    const double distance = centroid.squared_distance(vector);
    if (best == nullptr || distance < best_distance) {
      best = &sense;
      best_distance = distance;
    }
  }
  return *best;
}

}  // namespace

double nearest_centroid_accuracy(const std::vector<LabelledVector>& vectors) {
  std::map<std::string, std::array<Centroids, 2>> by_word;
  for (const LabelledVector& labelled : vectors) {
    by_word[labelled.word][labelled.half][labelled.sense].add(labelled.vector);
  }
  struct Tally {
    std::int64_t right = 0;
    std::int64_t all = 0;
  };
  std::map<std::string, Tally> tallies;
  for (const LabelledVector& labelled : vectors) {
    const auto& halves = by_word[labelled.word];
    if (halves[0].size() < 2 || halves[1].size() < 2) continue;
    const Centroids& means = halves[1 - labelled.half];
    if (!means.contains(labelled.sense)) continue;
    Tally& tally = tallies[labelled.word];
    tally.right += nearest(means, labelled.vector) == labelled.sense ? 1 : 0;
    ++tally.all;
  }
  if (tallies.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const auto& [word, tally] : tallies) {
    sum += static_cast<double>(tally.right) / static_cast<double>(tally.all);
  }
  return sum / static_cast<double>(tallies.size());
}

}  // namespace heed
