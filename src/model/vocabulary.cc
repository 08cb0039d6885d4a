#include "model/vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"

namespace heed {
namespace {

// Enough rows to keep the matrix products efficient (every chunk packs the unembedding and adds to
// its gradient), few enough to keep the logits small: 64 M floats are 256 MiB.
constexpr std::int64_t chunk_elements = std::int64_t{1} << 26;
constexpr std::int64_t most_chunk_rows = 4096;

// For passes of `rows` rows: equal chunks, except for the last.
std::int64_t chunk_rows(std::int64_t vocabulary_size, std::int64_t rows) {
  const std::int64_t most =
      std::clamp<std::int64_t>(chunk_elements / vocabulary_size, 16, most_chunk_rows);
  const std::int64_t chunks = std::max<std::int64_t>((rows + most - 1) / most, 1);
  return (rows + chunks - 1) / chunks;
}

}  // namespace

LossSum& LossSum::operator+=(const LossSum& other) {
  sum += other.sum;
  count += other.count;
  return *this;
}

VocabularyLoss::VocabularyLoss(std::int64_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

std::int64_t VocabularyLoss::bytes_needed(std::int64_t vocabulary_size, std::int64_t rows) {
  return chunk_rows(vocabulary_size, rows) * vocabulary_size *
         static_cast<std::int64_t>(sizeof(float));
}

template <class Chunk>
LossSum VocabularyLoss::in_chunks(View<const float> x, View<const std::int32_t> targets,
                                  View<float> losses, Chunk&& chunk) {
  const std::int64_t rows = x.extent(0);
  const std::int64_t most = chunk_rows(vocabulary_size_, rows);
  if (!logits_.present() || logits_.shape()[0] < most) {
    logits_ = Tensor<float>(Shape{most, vocabulary_size_});
  }
  LossSum total;
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped while computing a loss");
    const std::int64_t end = std::min(begin + most, rows);
    const View<float> chunk_losses = losses.slice(0, begin, end);
    chunk(begin, end, logits_.view().slice(0, 0, end - begin), chunk_losses);
    for (std::int64_t row = begin; row < end; ++row) {
      total.sum += losses(row);
      total.count += targets(row) != kernels::ignored_target;
    }
  }
  return total;
}

LossSum VocabularyLoss::forward(View<const float> x, const Unembedding& unembedding,
                                View<const std::int32_t> targets, View<float> losses) {
  return in_chunks(x, targets, losses, [&](auto begin, auto end, auto logits, auto chunk_losses) {
    kernels::linear_forward(x.slice(0, begin, end), unembedding, logits);
    kernels::cross_entropy_forward(logits, targets.slice(0, begin, end), chunk_losses);
  });
}

LossSum VocabularyLoss::forward_backward(View<const float> x, const Unembedding& unembedding,
                                         View<const std::int32_t> targets, View<float> losses,
                                         const Backward& backward) {
  const kernels::MultipliedWeight weight(unembedding);
  return in_chunks(x, targets, losses, [&](auto begin, auto end, auto logits, auto chunk_losses) {
    // 1. logits = x · unembeddingᵀ + bias
    const View<const float> chunk_x = x.slice(0, begin, end);
    kernels::linear_forward(chunk_x, unembedding, logits);
    // 2. the loss, and its gradient in place of the logits
    kernels::cross_entropy_forward_backward(logits, targets.slice(0, begin, end), backward.scale,
                                            chunk_losses);
    // 1. backward
    kernels::linear_backward_input(weight.view(), logits, backward.d_x.slice(0, begin, end),
                                   unembedding.precision);
    kernels::linear_backward_parameters(chunk_x, logits,
                                        {.weight = backward.d_unembedding, .bias = backward.d_bias},
                                        unembedding.precision);
  });
}

}  // namespace heed
