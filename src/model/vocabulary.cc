#include "model/vocabulary.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"

namespace heed {
namespace {

// Enough rows to keep the matrix products efficient (every chunk packs the unembedding and adds to
// its gradient), few enough to keep the logits small: 64 M floats are 256 MiB.
constexpr std::int64_t chunk_elements = std::int64_t{1} << 26;

// For passes of `rows` rows: equal chunks, except for the last.
std::int64_t rows_of_chunks(std::int64_t vocabulary_size, std::int64_t rows,
                            std::int64_t max_rows = VocabularyLoss::max_chunk_rows) {
  const std::int64_t most = std::min(std::clamp<std::int64_t>(chunk_elements / vocabulary_size, 16,
                                                              VocabularyLoss::max_chunk_rows),
                                     max_rows);
  const std::int64_t chunks = std::max<std::int64_t>((rows + most - 1) / most, 1);
  return (rows + chunks - 1) / chunks;
}

}  // namespace

LossSum& LossSum::operator+=(const LossSum& other) {
  sum += other.sum;
  count += other.count;
  smoothed += other.smoothed;
  return *this;
}

void LossSum::add(View<const float> losses, View<const float> smoothed_losses,
                  View<const std::int32_t> targets) {
  sum = kernels::sum(losses, sum);
  smoothed = kernels::sum(smoothed_losses, smoothed);
  const auto words = targets.span();
  count += std::ssize(words) - std::ranges::count(words, kernels::ignored_target);
}

VocabularyLoss::VocabularyLoss(std::int64_t vocabulary_size, float label_smoothing,
                               std::int64_t chunk_rows)
    : vocabulary_size_(vocabulary_size),
      label_smoothing_(label_smoothing),
      chunk_rows_(chunk_rows) {
  check(chunk_rows >= 1, "a chunk has rows");
  require(label_smoothing >= 0.0F && label_smoothing <= 1.0F, ErrorCode::invalid_argument,
          "the label smoothing is {}: expected a number from 0 to 1", label_smoothing);
}

std::int64_t VocabularyLoss::bytes_needed(std::int64_t vocabulary_size, std::int64_t rows) {
  return rows_of_chunks(vocabulary_size, rows) * vocabulary_size *
         static_cast<std::int64_t>(sizeof(float));
}

std::int64_t VocabularyLoss::reserve(std::int64_t rows, Device device) {
  const std::int64_t most = rows_of_chunks(vocabulary_size_, rows, chunk_rows_);
  if (!logits_.present() || logits_.shape()[0] < most || logits_.device() != device) {
    logits_ = Tensor<float>(Shape{most, vocabulary_size_}, device);
    if (label_smoothing_ > 0.0F) smoothed_ = Tensor<float>(Shape{most});
  }
  return most;
}

template <class Chunk>
LossSum VocabularyLoss::in_chunks(View<const float> x, View<const std::int32_t> targets,
                                  View<float> losses, Chunk&& chunk) {
  const std::int64_t rows = x.extent(0);
  const std::int64_t most = reserve(rows, x.device());
  LossSum total;
  for (std::int64_t begin = 0; begin < rows; begin += most) {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped while computing a loss");
    const std::int64_t end = std::min(begin + most, rows);
    const View<float> chunk_losses = losses.slice(0, begin, end);
    kernels::LabelSmoothing<float> smoothing{.rate = label_smoothing_};
    if (smoothed_.present()) smoothing.losses = smoothed_.view().slice(0, 0, end - begin);
    chunk(begin, end, logits_.view().slice(0, 0, end - begin), chunk_losses, smoothing);
    total.add(chunk_losses, smoothed_.present() ? smoothing.losses : chunk_losses,
              targets.slice(0, begin, end));
  }
  return total;
}

LossSum VocabularyLoss::forward(View<const float> x, const Unembedding& unembedding,
                                View<const std::int32_t> targets, View<float> losses,
                                std::int64_t positions) {
  const std::int64_t length = positions > 0 ? positions : x.extent(0);
  return in_chunks(
      x, targets, losses,
      [&](auto begin, auto end, auto logits, auto chunk_losses, const auto& smoothing) {
        kernels::linear_forward(x.slice(0, begin, end), unembedding, logits, length);
        kernels::cross_entropy_forward(logits, targets.slice(0, begin, end), chunk_losses,
                                       smoothing);
      });
}

LossSum VocabularyLoss::forward_backward(View<const float> x, const Unembedding& unembedding,
                                         View<const std::int32_t> targets, View<float> losses,
                                         const Backward& backward) {
  const kernels::MultipliedWeight weight(unembedding);
  Tensor<float> capped;  // the logits of a chunk, where they are capped
  return in_chunks(
      x, targets, losses,
      [&](auto begin, auto end, auto logits, auto chunk_losses, const auto& smoothing) {
        // 1. logits = x · unembeddingᵀ + bias
        const View<const float> chunk_x = x.slice(0, begin, end);
        kernels::linear_forward(chunk_x, unembedding, logits);
        if (unembedding.soft_cap > 0) {
          if (!capped.present())
            capped = Tensor<float>(logits.shape(), logits.device());  // later chunks are no larger
          kernels::copy(logits, capped.view().slice(0, 0, end - begin));
        }
        // 2. the loss, and its gradient in place of the logits
        kernels::cross_entropy_forward_backward(logits, targets.slice(0, begin, end),
                                                backward.scale, chunk_losses, smoothing);
        // 1. backward
        if (unembedding.soft_cap > 0) {
          kernels::soft_cap_backward(capped.view().slice(0, 0, end - begin), unembedding.soft_cap,
                                     logits, logits);
        }
        kernels::linear_backward_input(weight.view(), logits, backward.d_x.slice(0, begin, end),
                                       unembedding.precision);
        kernels::linear_backward_parameters(
            chunk_x, logits, {.weight = backward.d_unembedding, .bias = backward.d_bias},
            unembedding.precision);
      });
}

}  // namespace heed
