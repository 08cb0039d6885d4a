// One query's row of every head's pattern, computed from query and keys without a (T, T) buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace heed {

// Copies what one layer shows to a probe; a later layer's takes its place.
class HeadMixture {
 public:
  void keep_query(View<const float> query);    // (H, D)
  void keep_keys(View<const float> keys);      // (S, H, D), those that the query may see
  void keep_values(View<const float> values);  // (S, H, D)

  // softmax(query · keyᵀ / √D) over the S keys, in double.
  std::vector<double> pattern(std::int64_t head) const;

  std::span<const float> value(std::int64_t source, std::int64_t head) const;  // (D)

 private:
  std::span<const float> row(const std::vector<float>& rows, std::int64_t index) const;

  std::int64_t heads_ = 0;
  std::int64_t head_size_ = 0;
  std::vector<float> query_;   // (H, D)
  std::vector<float> keys_;    // (S, H, D)
  std::vector<float> values_;  // (S, H, D)
};

}  // namespace heed
