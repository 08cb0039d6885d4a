// The pattern row of one query in every head, computed from query and keys without a (T, T) buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/architecture.h"
#include "tensor/view.h"

namespace heed {

// Holds the values that a probe observed in one layer; those of the next layer replace them.
// Queries and keys are those that attention reads.
class HeadMixture {
 public:
  explicit HeadMixture(const AttentionSpecification& attention) : attention_(attention) {}

  void keep_query(View<const float> query);    // (H, D)
  void keep_keys(View<const float> keys);      // (S, G, D), up to the query's position
  void keep_values(View<const float> values);  // (S, G, D)

  // The softmax of the scores of the S keys in a layer, in double; 0 for masked keys.
  std::vector<double> pattern(std::int64_t layer, std::int64_t head) const;

  // (D), as query head `head` reads it
  std::span<const float> value(std::int64_t source, std::int64_t head) const;

 private:
  std::span<const float> row(const std::vector<float>& rows, std::int64_t index) const;
  // Of the key or value that a query head reads at a position.
  std::int64_t shared_row(std::int64_t source, std::int64_t head) const;

  AttentionSpecification attention_;
  std::vector<float> query_;   // (H, D)
  std::vector<float> keys_;    // (S, G, D)
  std::vector<float> values_;  // (S, G, D)
};

}  // namespace heed
