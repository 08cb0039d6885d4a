// Which features of a row are active, found while its pre-activations are computed piece by piece.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "microscope/features/dictionary.h"

namespace heed {

struct FeatureEntry {
  float value;
  std::int32_t feature;
};

// What is kept of a row whose pre-activations come piece by piece.
class RowSelection {
 public:
  // The k largest above `least`; 0: all of them.
  explicit RowSelection(std::int64_t k = 0, float least = 0.0F)
      : k_(static_cast<std::size_t>(k)), least_(least) {}

  // Pre-activations of the features [first, first + count).
  void take(const float* pre, std::int32_t first, std::int32_t count) {
    constexpr std::int32_t block = 16;
    std::int32_t i = 0;
    for (; i + block <= count; i += block) {
      int exceeds = 0;
      for (std::int32_t j = 0; j < block; ++j) exceeds |= pre[i + j] > least_;
      if (exceeds == 0) continue;
      for (std::int32_t j = i; j < i + block; ++j) add(pre[j], first + j);
    }
    for (; i < count; ++i) add(pre[i], first + i);
  }
  void add(float value, std::int32_t feature) {
    if (!(value > least_)) return;
    kept_.push_back({value, feature});
    if (k_ == 0) return;
    std::push_heap(kept_.begin(), kept_.end(), is_before);
    if (kept_.size() > k_) {
      std::pop_heap(kept_.begin(), kept_.end(), is_before);
      kept_.pop_back();
    }
    if (kept_.size() == k_) least_ = kept_.front().value;
  }

  std::vector<FeatureEntry>& kept() { return kept_; }

 private:
  // The order in which the k largest are kept.
  static bool is_before(const FeatureEntry& a, const FeatureEntry& b) {
    return a.value > b.value || (a.value == b.value && a.feature < b.feature);
  }

  std::size_t k_;
  float least_;
  std::vector<FeatureEntry> kept_;
};

// Of rows, features ascending.
FeatureRows sorted_rows(std::vector<RowSelection>& selected);

}  // namespace heed
