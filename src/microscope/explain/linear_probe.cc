#include "microscope/explain/linear_probe.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

// Of the mean square of a channel: enough where there are few more vectors than channels.
constexpr double ridge = 0.1;
constexpr int label_orders = 5;
constexpr std::uint64_t order_seed = 12;

using DoubleMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

LinearProbe::LinearProbe(View<const float> vectors, std::span<const std::size_t> labels,
                         std::size_t classes)
    : classes_(classes) {
  require(vectors.rank() == 2 && vectors.extent(0) > 0, ErrorCode::invalid_argument,
          "there are no vectors to train a probe on");
  require(classes >= 2, ErrorCode::invalid_argument, "a probe tells at least two classes apart");
  check(vectors.extent(0) == std::ssize(labels), "each vector has a label");
  const std::int64_t rows = vectors.extent(0), channels = vectors.extent(1);
  DoubleMatrix x(rows, channels);
  DoubleMatrix wanted = DoubleMatrix::Zero(rows, static_cast<std::int64_t>(classes));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) x(i, c) = vectors(i, c);
    wanted(i, static_cast<std::int64_t>(labels[static_cast<std::size_t>(i)])) = 1;
  }
  const Eigen::RowVectorXd mean = x.colwise().mean(), shares = wanted.colwise().mean();
  x.rowwise() -= mean;
  wanted.rowwise() -= shares;
  const double length = std::sqrt(x.squaredNorm() / static_cast<double>(rows));
  if (length > 0) length_ = length;
  x /= length_;
  DoubleMatrix gram = x.transpose() * x;
  gram.diagonal().array() += ridge * static_cast<double>(rows) / static_cast<double>(channels);
  const DoubleMatrix solved = gram.ldlt().solve(x.transpose() * wanted);
  mean_.assign(mean.begin(), mean.end());
  shares_.assign(shares.begin(), shares.end());
  weights_.assign(solved.data(), solved.data() + solved.size());
}

std::vector<double> LinearProbe::scores(std::span<const float> vector) const {
  check(vector.size() == mean_.size(), "a vector as wide as those of the training");
  std::vector<double> scores = shares_;
  for (std::size_t c = 0; c < vector.size(); ++c) {
    const double value = (vector[c] - mean_[c]) / length_;
    for (std::size_t k = 0; k < classes_; ++k) scores[k] += value * weights_[c * classes_ + k];
  }
  return scores;
}

std::size_t LinearProbe::read(std::span<const float> vector) const {
  const std::vector<double> all = scores(vector);
  return static_cast<std::size_t>(std::ranges::max_element(all) - all.begin());
}

double LinearProbe::accuracy(View<const float> vectors, std::span<const std::size_t> labels) const {
  check(vectors.extent(0) == std::ssize(labels) && !labels.empty(), "each vector has a label");
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < vectors.extent(0); ++i) {
    right += read(vectors[i].span()) == labels[static_cast<std::size_t>(i)];
  }
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

bool ProbeAccuracy::beats(const ProbeAccuracy& other) const {
  const auto variance = [](const ProbeAccuracy& probe) {
    const double share = probe.accuracy;
    return share * (1 - share) / static_cast<double>(probe.held_out);
  };
  return accuracy - other.accuracy > 2 * std::sqrt(variance(*this) + variance(other));
}

ProbeAccuracy probe_accuracy(View<const float> training, std::span<const std::size_t> labels,
                             View<const float> held_out,
                             std::span<const std::size_t> held_out_labels, std::size_t classes) {
  ProbeAccuracy result{
      .accuracy = LinearProbe(training, labels, classes).accuracy(held_out, held_out_labels),
      .held_out = held_out.extent(0)};
  std::vector<std::size_t> shuffled(labels.begin(), labels.end());
  RandomStream random(order_seed, 0);
  for (int order = 0; order < label_orders; ++order) {
    for (std::size_t i = shuffled.size() - 1; i > 0; --i) {
      std::swap(shuffled[i], shuffled[random.below(i + 1)]);
    }
    result.shuffled +=
        LinearProbe(training, shuffled, classes).accuracy(held_out, held_out_labels) / label_orders;
  }
  return result;
}

}  // namespace heed
