// A mean over tokens that come in windows (or sentences), and how sure it is.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "train/evaluation.h"

namespace heed {

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

}  // namespace heed
