#include "train/evaluation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace heed {
namespace {

// Mean over windows weighted by their tokens, and the standard error of that ratio.
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
    double squared = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double residual = sums_[i] - mean * counts_[i];
      squared += residual * residual;
    }
    const auto windows = static_cast<double>(sums_.size());
    const double correction = windows > 1 ? windows / (windows - 1) : 0.0;
    return {.tokens = static_cast<std::int64_t>(count),
            .nats_per_token = mean,
            .standard_error = std::sqrt(squared * correction) / count};
  }

 private:
  std::vector<double> sums_;
  std::vector<double> counts_;
};

}  // namespace

Evaluator::Evaluator(const GptConfig& config, const EvaluationOptions& options)
    : options_(options),
      sequence_length_(options.sequence_length > 0 ? options.sequence_length : config.context),
      buffers_(config, options.batch_size, sequence_length_),
      tokens_(Shape{options.batch_size, sequence_length_}),
      targets_(Shape{options.batch_size, sequence_length_}) {}

Evaluation Evaluator::evaluate(const Gpt& gpt, const TokenData& data) {
  const std::int64_t length = sequence_length_;
  require(data.size() >= 2, ErrorCode::invalid_argument,
          "the text holds {} tokens; predicting takes at least 2", data.size());
  const std::int64_t windows = (data.size() - 1 + length - 1) / length;  // the last may be short
  const std::int64_t all_batches = (windows + options_.batch_size - 1) / options_.batch_size;
  const std::int64_t batches =
      options_.batches > 0 ? std::min(options_.batches, all_batches) : all_batches;
  const bool everything = batches == all_batches;
  const std::int64_t wanted = everything ? windows : batches * options_.batch_size;

  WindowStatistics statistics;
  Progress progress{.what = "evaluating", .total = everything ? data.size() - 1 : wanted * length};
  std::vector<std::int32_t> window(static_cast<std::size_t>(length + 1));
  for (std::int64_t first = 0; first < wanted; first += options_.batch_size) {
    require(!stop_requested(options_.stop), ErrorCode::interrupted, "stopped while evaluating");
    for (std::int64_t row = 0; row < options_.batch_size; ++row) {
      // Evenly spread over all windows; rows past the last one, and positions past a short one's
      // end, are ignored.
      const std::int64_t begin = (first + row) * windows / wanted * length;
      const std::int64_t count =
          first + row < wanted ? std::min(length, data.size() - 1 - begin) : 0;
      std::fill(window.begin(), window.end(), 0);
      if (count > 0) data.read(begin, std::span(window).first(static_cast<std::size_t>(count + 1)));
      for (std::int64_t t = 0; t < length; ++t) {
        tokens_.view()(row, t) = window[static_cast<std::size_t>(t)];
        targets_.view()(row, t) =
            t < count ? window[static_cast<std::size_t>(t + 1)] : kernels::ignored_target;
      }
    }
    gpt.loss(tokens_, targets_, buffers_);
    for (std::int64_t row = 0; row < options_.batch_size; ++row) {
      double sum = 0;
      std::int64_t count = 0;
      for (std::int64_t t = 0; t < length; ++t) {
        sum += buffers_.losses[row * length + t];
        count += targets_.view()(row, t) != kernels::ignored_target;
      }
      if (count > 0) statistics.add(sum, count);
      progress.done += count;
    }
    if (options_.progress) options_.progress(progress);
  }
  return statistics.result();
}

}  // namespace heed
