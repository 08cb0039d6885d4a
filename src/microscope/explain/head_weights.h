// The attention weights of one layer by head, as rows (D, C) that read from or write to the stream.
#pragma once

#include "model/gpt.h"
#include "tensor/tensor.h"

namespace heed {

// In TransformerLens's notation, x·W: W_Q = queryᵀ, W_K = keyᵀ, W_V = valueᵀ (C, D) and W_O =
// output (D, C). So W_QK = queryᵀ·key and W_OV = valueᵀ·output, both (C, C) of rank D.
class LayerHeads {
 public:
  LayerHeads(const Gpt& gpt, std::int64_t layer);

  View<const float> query(std::int64_t head) const { return rows(0, head); }  // (D, C)
  View<const float> key(std::int64_t head) const { return rows(1, head); }
  View<const float> value(std::int64_t head) const { return rows(2, head); }
  View<const float> output(std::int64_t head) const;

  // All heads stacked, (A, C).
  View<const float> all_queries() const { return third(0); }
  View<const float> all_keys() const { return third(1); }
  View<const float> all_values() const { return third(2); }
  View<const float> all_outputs() const { return outputs_; }

 private:
  View<const float> third(std::int64_t index) const;
  View<const float> rows(std::int64_t third_index, std::int64_t head) const;

  std::int64_t head_size_;
  View<const float> query_key_value_;  // (3A, C)
  Tensor<float> outputs_;              // (A, C), the projection transposed
};

}  // namespace heed
