// How well a model predicts a text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "comm/group.h"
#include "model/gpt.h"
#include "train/settings.h"
#include "train/token_sequence.h"

namespace heed {

// The model runs on windows of sequence_length tokens, each `stride` tokens after the previous one;
// a window scores the targets that no earlier one has. With stride == sequence_length each token is
// processed once; a smaller stride gives every target more context, and costs more.
//
// Or each window is a document (or a part of sequence_length tokens of a long one), from its
// beginning, as in Windows::documents and Windows::prompts.
struct EvaluationOptions {
  std::int64_t batch_size = 8;
  std::int64_t sequence_length = 0;  // 0: the model's context
  std::int64_t stride = 0;           // 0: sequence_length
  Windows windows = Windows::stream;
  // Where given, keys and values are rounded to what a cache of this type holds.
  std::optional<CacheType> cache_type;
  std::int64_t batches = 0;   // evenly spread over the windows; 0: all of them
  ProgressCallback progress;  // scored tokens
  StopFlag stop = nullptr;
  // Processes that share the work; null: this one alone. With others, without stop and scored.
  Group* group = nullptr;
  // Of processes that share every sequence, and all evaluate the same; without stop and scored.
  KeyValueRing* ring = nullptr;
  // Receives the losses, in nats, of the targets from token `first` on, window by window.
  std::function<void(std::int64_t first, std::span<const float> losses)> scored;
};

struct Evaluation {
  std::int64_t tokens = 0;    // scored
  double nats_per_token = 0;  // mean loss
  // Of the mean, from the spread between windows; absent for a single window.
  std::optional<double> standard_error;
};

// Reuses its buffers from call to call.
class Evaluator {
 public:
  // Throws Error{invalid_argument} for an invalid sequence length, stride or batch size.
  Evaluator(const StackSpecification& config, const EvaluationOptions& options);

  // Throws Error{invalid_argument} for fewer than two tokens, Error{interrupted} when stopped.
  Evaluation evaluate(const Gpt& gpt, const TokenSequence& data);

 private:
  // Where a window begins, and which of its targets it scores.
  struct Window {
    std::int64_t begin = 0;
    std::int64_t first = 0;  // positions [first, last) of the window
    std::int64_t last = 0;
  };
  std::vector<Window> plan(const TokenSequence& data) const;
  std::vector<Window> plan_documents(const TokenSequence& data) const;
  // Of the targets that window `row` of the last batch scores.
  std::span<const float> scored_losses(std::int64_t row, const Window& window) const;
  double window_loss(std::int64_t row, const Window& window) const;
  void fill_row(std::int64_t row, const Window& window, const TokenSequence& data);

  EvaluationOptions options_;
  std::int32_t end_of_text_;
  EvaluationBuffers buffers_;
  Tensor<std::int32_t> tokens_;   // (B, T)
  Tensor<std::int32_t> targets_;  // (B, T)
};

}  // namespace heed
