// The loss over the vocabulary. The logits (N, V) of a whole batch never exist: rows go through the
// unembedding in chunks.
#pragma once

#include <cstdint>

#include "base/progress.h"
#include "kernels/operands.h"
#include "tensor/tensor.h"

namespace heed {

struct LossSum {
  double sum = 0;          // nats
  std::int64_t count = 0;  // targets that were not ignored

  double mean() const { return count == 0 ? 0.0 : sum / static_cast<double>(count); }
  LossSum& operator+=(const LossSum& other);
};

class VocabularyLoss {
 public:
  using Unembedding = kernels::LinearParameters<float>;

  explicit VocabularyLoss(std::int64_t vocabulary_size);

  // Memory of a chunk of logits in passes of `rows` rows.
  static std::int64_t bytes_needed(std::int64_t vocabulary_size, std::int64_t rows);

  // Once `stop` is set, both functions throw Error{interrupted} before their next chunk.
  void set_stop(StopFlag stop) { stop_ = stop; }

  // Losses (N) of predicting `targets` (N) from x (N, C), the final norm's output, through
  // unembedding (V, C): cross-entropy in nats, 0 for ignored targets.
  LossSum forward(View<const float> x, const Unembedding& unembedding,
                  View<const std::int32_t> targets, View<float> losses);

  // The same and, chunk by chunk, scale · gradient: d_x (N, C) overwritten, d_unembedding (V, C)
  // and d_bias (V), absent where the unembedding has none, accumulate.
  struct Backward {
    float scale = 1.0F;
    View<float> d_x;
    View<float> d_unembedding;
    View<float> d_bias{};
  };
  LossSum forward_backward(View<const float> x, const Unembedding& unembedding,
                           View<const std::int32_t> targets, View<float> losses,
                           const Backward& backward);

 private:
  template <class Chunk>
  LossSum in_chunks(View<const float> x, View<const std::int32_t> targets, View<float> losses,
                    Chunk&& chunk);

  std::int64_t vocabulary_size_;
  Tensor<float> logits_;  // (rows, V)
  StopFlag stop_ = nullptr;
};

}  // namespace heed
