#include "kernels/cpu/prefetch_distance.h"

#include <algorithm>

namespace heed::kernels {

double PrefetchDistance::Times::median() const {
  std::array<double, products> sorted = seconds;
  std::ranges::nth_element(sorted, sorted.begin() + products / 2);
  return sorted[products / 2];
}

std::int64_t PrefetchDistance::best() const {
  const std::scoped_lock lock(mutex_);
  return distances[best_];
}

std::int64_t PrefetchDistance::next() {
  const std::scoped_lock lock(mutex_);
  if (settled_for_ > 0) {
    --settled_for_;
    return distances[best_];
  }
  // In no order that a model's layers could have too (Knuth's linear congruential generator).
  random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
  std::size_t choice = (random_ >> 33) % distances.size();
  while (times_[choice].complete()) choice = (choice + 1) % distances.size();
  return distances[choice];
}

void PrefetchDistance::took(std::int64_t distance, double seconds_for_byte) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(distances, distance);
  if (settled_for_ > 0 || found == distances.end()) return;
  Times& times = times_[static_cast<std::size_t>(found - distances.begin())];
  if (!times.complete()) times.seconds[times.count++] = seconds_for_byte;
  if (std::ranges::all_of(times_, &Times::complete)) settle();
}

// Medians, since a product during which the thread was suspended takes as long as thousands.
void PrefetchDistance::settle() {
  const auto least = std::ranges::min_element(times_, {}, &Times::median);
  best_ = static_cast<std::size_t>(least - times_.begin());
  times_ = {};
  settled_for_ = period;
}

}  // namespace heed::kernels
