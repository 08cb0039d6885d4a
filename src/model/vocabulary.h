// The loss over the vocabulary. The logits (N, V) of a whole batch never exist: rows go through the
// unembedding in chunks.
#pragma once

#include <cstdint>

#include "base/progress.h"
#include "kernels/operands.h"
#include "model/parameter_schedule.h"
#include "tensor/tensor.h"

namespace heed {

struct LossSum {
  double sum = 0;          // nats, never smoothed
  std::int64_t count = 0;  // targets that were not ignored
  double smoothed = 0;     // what is minimised: sum, with labels smoothed where they are

  double mean() const { return count == 0 ? 0.0 : sum / static_cast<double>(count); }
  double smoothed_mean() const { return count == 0 ? 0.0 : smoothed / static_cast<double>(count); }
  LossSum& operator+=(const LossSum& other);
  // Losses and smoothed losses (N) of targets (N); those of ignored targets are 0.
  void add(View<const float> losses, View<const float> smoothed_losses,
           View<const std::int32_t> targets);
};

class VocabularyLoss {
 public:
  using Unembedding = kernels::LinearParameters<float>;

  // `label_smoothing`, in [0, 1], changes what is differentiated and LossSum::smoothed
  // (kernels::LabelSmoothing), not the losses.
  // `chunk_rows` are the most rows of a chunk: fewer keep the logits in the processor's caches, and
  // pack the unembedding more often.
  explicit VocabularyLoss(std::int64_t vocabulary_size, float label_smoothing = 0.0F,
                          std::int64_t chunk_rows = max_chunk_rows);

  static constexpr std::int64_t max_chunk_rows = 4096;

  float label_smoothing() const { return label_smoothing_; }

  // Memory of a chunk of logits in passes of `rows` rows.
  static std::int64_t bytes_needed(std::int64_t vocabulary_size, std::int64_t rows);

  // Once `stop` is set, both functions throw Error{interrupted} before their next chunk.
  void set_stop(StopFlag stop) { stop_ = stop; }

  // Losses (N) of predicting `targets` (N) from x (N, C), the final norm's output, through
  // unembedding (V, C): cross-entropy in nats, 0 for ignored targets.
  // `positions` is the length of the pass that the rows belong to (0: N).
  LossSum forward(View<const float> x, const Unembedding& unembedding,
                  View<const std::int32_t> targets, View<float> losses, std::int64_t positions = 0);

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

  // Both of an unembedding that comes in pieces (StackSchedule), each of which is read once forward
  // and once backward. Equal but for rounding: sums are of the pieces' sums.
  LossSum forward_in_pieces(const StackSchedule& schedule, View<const float> x,
                            const Unembedding& unembedding, View<const std::int32_t> targets,
                            View<float> losses, std::int64_t positions = 0);
  LossSum forward_backward_in_pieces(const StackSchedule& schedule, View<const float> x,
                                     const Unembedding& unembedding,
                                     View<const std::int32_t> targets, View<float> losses,
                                     const Backward& backward);

 private:
  struct PieceSums;
  class PieceRoom;

  // Room for the logits of a pass of `rows` rows, as many at a time as it returns.
  std::int64_t reserve(std::int64_t rows, Device device);
  void add_pieces(const StackSchedule& schedule, View<const float> x,
                  const Unembedding& unembedding, View<const std::int32_t> targets,
                  std::int64_t positions, PieceRoom& room, PieceSums& sums);
  LossSum sum_of_rows(PieceSums& sums, View<const std::int32_t> targets, View<float> losses) const;
  template <class Chunk>
  LossSum in_chunks(View<const float> x, View<const std::int32_t> targets, View<float> losses,
                    Chunk&& chunk);

  std::int64_t vocabulary_size_;
  float label_smoothing_;
  std::int64_t chunk_rows_;
  Tensor<float> logits_;    // (rows, V)
  Tensor<float> smoothed_;  // (rows), losses of a chunk, if labels are smoothed
  StopFlag stop_ = nullptr;
};

// logits (M, V) of rows x (M, C), through an unembedding that comes in pieces.
void unembed_in_pieces(const StackSchedule& schedule, View<const float> x,
                       const VocabularyLoss::Unembedding& unembedding, View<float> logits,
                       std::int64_t positions);

}  // namespace heed
