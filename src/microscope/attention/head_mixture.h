// The pattern row of one query in every head, computed from query and keys without a (T, T) buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace heed {

// Holds the values that a probe observed in one layer; those of the next layer replace them.
class HeadMixture {
 public:
  void keep_query(View<const float> query);    // (H, D)
  void keep_keys(View<const float> keys);      // (S, H, D), up to the query's position
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
