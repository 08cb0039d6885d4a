// A plain implementation of a trainer's steps in double, which multiplies everything.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "microscope/features/dictionary_training.h"

namespace heed::testing {

using PlainMatrix = std::vector<std::vector<double>>;

inline PlainMatrix matrix_of(View<const float> rows) {
  PlainMatrix all(static_cast<std::size_t>(rows.extent(0)));
  for (std::int64_t n = 0; n < rows.extent(0); ++n) {
    for (std::int64_t c = 0; c < rows.extent(1); ++c) all[n].push_back(rows(n, c));
  }
  return all;
}

// A weight and the moments of its gradients.
struct PlainWeight {
  PlainMatrix values, first, second;

  explicit PlainWeight(PlainMatrix start) : values(std::move(start)) {
    first.assign(values.size(), std::vector<double>(values.front().size(), 0.0));
    second = first;
  }
  void update(const PlainMatrix& gradient, double rate, std::int64_t step) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < values[i].size(); ++j) {
        const double g = gradient[i][j];
        first[i][j] = 0.9 * first[i][j] + 0.1 * g;
        second[i][j] = 0.999 * second[i][j] + 0.001 * g * g;
        const double mean = first[i][j] / (1 - std::pow(0.9, step));
        const double square = second[i][j] / (1 - std::pow(0.999, step));
        values[i][j] -= rate * mean / (std::sqrt(square) + 1e-8);
      }
    }
  }
};

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

inline PlainMatrix zeros(std::size_t rows, std::size_t columns) {
  return PlainMatrix(rows, std::vector<double>(columns, 0.0));
}

class PlainTrainer {
 public:
  PlainTrainer(const Dictionary& start, const DictionarySettings& settings, bool subtracts)
      : settings_(settings),
        subtracts_(subtracts),
        encoder_(matrix_of(start.weights().encoder)),
        bias_(matrix_of(start.weights().encoder_bias.view().reshape({1, settings.features}))),
        decoder_(matrix_of(View<const float>(start.weights().decoder.data(),
                                             {settings.features, start.specification().outputs}))),
        decoder_bias_(matrix_of(
            start.weights().decoder_bias.view().reshape({1, start.specification().outputs}))),
        threshold_(PlainMatrix(
            1, std::vector<double>(settings.features, std::log(settings.first_threshold)))),
        silent_(static_cast<std::size_t>(settings.features), 0) {}

  // The loss, and that of dead features.
  std::pair<double, double> step(const PlainMatrix& x, const PlainMatrix& y) {
    const std::size_t rows = x.size(), features = silent_.size(), outputs = y.front().size();
    const double n = static_cast<double>(rows);
    PlainMatrix d_encoder = zeros(features, x.front().size()), d_bias = zeros(1, features);
    PlainMatrix d_decoder = zeros(features, outputs), d_decoder_bias = zeros(1, outputs);
    PlainMatrix d_threshold = zeros(1, features);
    std::vector<bool> was_active(features, false);
    double loss = 0, auxiliary = 0;
    std::vector<std::size_t> dead;
    for (std::size_t f = 0; f < features; ++f) {
      if (settings_.auxiliary > 0 && silent_[f] >= settings_.dead_after) dead.push_back(f);
    }
    const std::size_t wanted = outputs / 2;
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<double> input = x[row], pre(features), acts(features, 0.0);
      if (subtracts_) {
        for (std::size_t c = 0; c < input.size(); ++c) input[c] -= decoder_bias_.values[0][c];
      }
      for (std::size_t f = 0; f < features; ++f) {
        pre[f] = dot(encoder_.values[f], input) + bias_.values[0][f];
      }
      const bool takes_k = settings_.activation == FeatureActivation::top_k;
      const bool jumps = settings_.activation == FeatureActivation::jump_relu;
      for (const std::size_t f : largest(pre, takes_k ? settings_.k : settings_.features)) {
        acts[f] = std::max(pre[f], 0.0);
        if (jumps && pre[f] <= std::exp(threshold_.values[0][f])) acts[f] = 0;
      }
      std::vector<double> missing = decoder_bias_.values[0];  // ŷ − y
      for (std::size_t c = 0; c < outputs; ++c) missing[c] -= y[row][c];
      add_decoded(acts, missing);
      loss += dot(missing, missing) / n;
      const auto differentiate = [&](const std::vector<double>& own,
                                     const std::vector<double>& d_out, double l1) {
        for (std::size_t f = 0; f < features; ++f) {
          if (own[f] == 0) continue;
          const double d = dot(d_out, decoder_.values[f]) + l1;
          for (std::size_t c = 0; c < outputs; ++c) d_decoder[f][c] += own[f] * d_out[c];
          for (std::size_t c = 0; c < input.size(); ++c) d_encoder[f][c] += d * input[c];
          d_bias[0][f] += d;
          if (!subtracts_) continue;
          for (std::size_t c = 0; c < input.size(); ++c) {
            d_decoder_bias[0][c] -= d * encoder_.values[f][c];
          }
        }
      };
      std::vector<double> d_out = missing;
      for (double& value : d_out) value *= 2 / n;
      for (std::size_t c = 0; c < outputs; ++c) d_decoder_bias[0][c] += d_out[c];
      const bool is_relu = settings_.activation == FeatureActivation::relu;
      differentiate(acts, d_out, is_relu ? settings_.l1 / n : 0);
      for (std::size_t f = 0; jumps && f < features; ++f) {
        const double theta = std::exp(threshold_.values[0][f]);
        if (std::abs(pre[f] - theta) >= settings_.bandwidth / 2) continue;
        d_threshold[0][f] -= theta / settings_.bandwidth *
                             (theta * dot(d_out, decoder_.values[f]) + settings_.l0 / n);
      }
      for (std::size_t f = 0; f < features; ++f) {
        if (acts[f] > 0) was_active[f] = true;
      }
      if (dead.empty()) continue;
      std::vector<double> dead_pre(features, -1e30), dead_acts(features, 0.0);
      for (const std::size_t f : dead) dead_pre[f] = pre[f];
      for (const std::size_t f : largest(dead_pre, std::min(wanted, dead.size()))) {
        dead_acts[f] = pre[f];
      }
      std::vector<double> rest = missing;
      add_decoded(dead_acts, rest);
      auxiliary += dot(rest, rest) / n;
      const double share = std::min(1.0, static_cast<double>(dead.size()) / wanted);
      for (double& value : rest) value *= 2 / n * settings_.auxiliary * share;
      differentiate(dead_acts, rest, 0);
    }
    const double rate = settings_.learning_rate;
    ++steps_;
    for (std::size_t f = 0; f < features; ++f) {
      const double along = dot(d_decoder[f], decoder_.values[f]);
      for (std::size_t c = 0; c < outputs; ++c) d_decoder[f][c] -= along * decoder_.values[f][c];
    }
    encoder_.update(d_encoder, rate, steps_);
    bias_.update(d_bias, rate, steps_);
    decoder_.update(d_decoder, rate, steps_);
    decoder_bias_.update(d_decoder_bias, rate, steps_);
    threshold_.update(d_threshold, rate, steps_);
    for (std::vector<double>& row : decoder_.values) {
      const double norm = std::sqrt(dot(row, row));
      for (double& value : row) value /= norm;
    }
    for (std::size_t f = 0; f < features; ++f) {
      silent_[f] = was_active[f] ? 0 : silent_[f] + static_cast<std::int64_t>(rows);
    }
    return {loss, auxiliary};
  }

  const PlainMatrix& encoder() const { return encoder_.values; }
  const PlainMatrix& decoder() const { return decoder_.values; }
  const PlainMatrix& decoder_bias() const { return decoder_bias_.values; }
  const PlainMatrix& bias() const { return bias_.values; }
  PlainMatrix threshold() const {
    PlainMatrix all = threshold_.values;
    for (double& value : all.front()) value = std::exp(value);
    return all;
  }

 private:
  static std::vector<std::size_t> largest(const std::vector<double>& values, std::int64_t count) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    order.resize(static_cast<std::size_t>(count));
    return order;
  }
  void add_decoded(const std::vector<double>& acts, std::vector<double>& out) const {
    for (std::size_t f = 0; f < acts.size(); ++f) {
      for (std::size_t c = 0; c < out.size(); ++c) out[c] += acts[f] * decoder_.values[f][c];
    }
  }

  DictionarySettings settings_;
  bool subtracts_;
  PlainWeight encoder_, bias_, decoder_, decoder_bias_, threshold_;
  std::vector<std::int64_t> silent_;
  std::int64_t steps_ = 0;
};

}  // namespace heed::testing
