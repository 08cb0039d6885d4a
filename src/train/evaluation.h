// How well a model predicts a text.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "comm/group.h"
#include "model/probe.h"
#include "model/transformer.h"
#include "train/settings.h"
#include "train/token_data.h"

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
  // For processes that share every sequence, and all evaluate the same; without stop and scored.
  KeyValueRing* ring = nullptr;
  // Receives the losses, in nats, of the targets from token `first` on, window by window.
  std::function<void(std::int64_t first, std::span<const float> losses)> scored;
};

struct Evaluation {
  std::int64_t tokens = 0;    // scored
  double nats_per_token = 0;  // mean loss
  // The standard error of the mean, from the spread between windows; absent for a single window.
  std::optional<double> standard_error;
};

// Reuses its buffers from call to call.
class Evaluator {
 public:
  // Throws Error{invalid_argument} for an invalid sequence length, stride or batch size.
  Evaluator(const StackSpecification& config, const EvaluationOptions& options);

  // Throws Error{invalid_argument} for fewer than two tokens, Error{interrupted} when stopped.
  // Buffers move to where the model is.
  Evaluation evaluate(const Transformer& model, const TokenSequence& data);

 private:
  // Where a window begins, and which of its targets it scores.
  struct Window {
    std::int64_t begin = 0;
    std::int64_t first = 0;  // positions [first, last) of the window
    std::int64_t last = 0;
  };
  std::vector<Window> plan(const TokenSequence& data) const;
  std::vector<Window> plan_documents(const TokenSequence& data) const;
  // The losses of the targets that window `row` of the last batch scores.
  std::span<const float> scored_losses(std::int64_t row, const Window& window) const;
  double window_loss(std::int64_t row, const Window& window) const;
  void fill_row(std::int64_t row, const Window& window, const TokenSequence& data);

  EvaluationOptions options_;
  std::int32_t end_of_text_;
  EvaluationBuffers buffers_;
  Tensor<std::int32_t> tokens_;   // (B, T)
  Tensor<std::int32_t> targets_;  // (B, T)
};

// A mean over tokens that come in windows (or sentences), weighted by their tokens, and the
// standard error of that ratio.
class WindowStatistics {
 public:
  void add(double sum, std::int64_t count) {
    sums_.push_back(sum);
    counts_.push_back(static_cast<double>(count));
  }

  Evaluation result() const {
    double sum = 0;
    double count = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sum += sums_[i];
      count += counts_[i];
    }
    const double mean = sum / count;
    Evaluation evaluation{.tokens = static_cast<std::int64_t>(count), .nats_per_token = mean};
    if (sums_.size() > 1) evaluation.standard_error = standard_error(mean, count);
    return evaluation;
  }

 private:
  double standard_error(double mean, double count) const {
    double squared = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double residual = sums_[i] - mean * counts_[i];
      squared += residual * residual;
    }
    const auto windows = static_cast<double>(sums_.size());
    return std::sqrt(squared * windows / (windows - 1)) / count;
  }

  std::vector<double> sums_;
  std::vector<double> counts_;
};

struct WindowLoss {
  double sum = 0;  // of its scored targets, in nats
  std::int64_t count = 0;
};

// What each process has, in the order of ranks.
std::vector<std::vector<WindowLoss>> gather_losses(Group& group,
                                                   const std::vector<WindowLoss>& own);

// `windows(batch)` gives the losses of the windows of a batch, of which there are `batches`. The
// processes of a group (null: this one is alone) take them in turn, and all of them get what one
// would have found, to the bit. All of them run the model as often: one that has no batch left
// repeats one.
template <class Windows>
Evaluation evaluate_in_turn(Group* group, std::int64_t batches, Windows&& windows) {
  const std::int64_t processes = group != nullptr ? group->size() : 1;
  const std::int64_t rank = group != nullptr ? group->rank() : 0;
  std::vector<WindowLoss> own;
  for (std::int64_t first = 0; first < batches; first += processes) {
    const std::int64_t batch = std::min(first + rank, batches - 1);
    const std::vector<WindowLoss> losses = windows(batch);
    if (batch != first + rank) continue;
    // A batch's losses, and before them their number.
    own.push_back({.count = std::ssize(losses)});
    own.insert(own.end(), losses.begin(), losses.end());
  }
  std::vector<std::vector<WindowLoss>> all{std::move(own)};
  if (processes > 1) all = gather_losses(*group, all.front());
  WindowStatistics statistics;
  std::vector<std::size_t> next(all.size(), 0);
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const auto r = static_cast<std::size_t>(batch % processes);
    const std::int64_t count = all[r][next[r]++].count;
    for (std::int64_t i = 0; i < count; ++i) {
      const WindowLoss& each = all[r][next[r]++];
      statistics.add(each.sum, each.count);
    }
  }
  return statistics.result();
}

// Throws Error{interrupted} out of a pass at its next tick once a stop is requested. What the pass
// computed so far is discarded by the caller.
class StopProbe final : public Probe {
 public:
  explicit StopProbe(StopFlag stop) : stop_(stop) {}

  void tick() override {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped in a pass");
  }
  bool wants(const Point&) const override { return false; }
  void observe(const Point&, View<const float>) override {}

 private:
  StopFlag stop_;
};

}  // namespace heed
