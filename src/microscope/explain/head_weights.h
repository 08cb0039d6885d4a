// The attention weights of one layer by query head, as rows (D, C) that read from or write to the
// stream. Query heads of a group have the same key and value. Where queries and keys have norms of
// their own, rows of queries and keys are multiplied by the gains: scores are then their products
// up to a positive factor for each token. Rotary positions turn queries and keys after these rows:
// W_QK is that of a position and itself.
#pragma once

#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

// In TransformerLens's notation, x·W: W_Q = queryᵀ, W_K = keyᵀ, W_V = valueᵀ (C, D) and W_O =
// output (D, C). So W_QK = queryᵀ·key and W_OV = valueᵀ·output, both (C, C) of rank D.
class LayerHeads {
 public:
  LayerHeads(const Transformer& gpt, std::int64_t layer);

  View<const float> query(std::int64_t head) const;  // (D, C)
  View<const float> key(std::int64_t head) const;
  View<const float> value(std::int64_t head) const;
  View<const float> output(std::int64_t head) const;

  // All heads stacked: queries and outputs (A, C), keys and values (K, C).
  View<const float> all_queries() const;
  View<const float> all_keys() const;
  View<const float> all_values() const;
  View<const float> all_outputs() const { return outputs_; }

 private:
  View<const float> head_rows(View<const float> rows, std::int64_t head) const;

  const AttentionSpecification& attention_;
  View<const float> query_key_value_;  // (A + 2K, C)
  Tensor<float> with_gains_;           // (A + 2K, C), where queries and keys have norms
  Tensor<float> outputs_;              // (A, C), the projection transposed
};

}  // namespace heed
