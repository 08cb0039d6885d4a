#include "microscope/explain/logit_lens.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/kernels.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::int64_t chunk_elements = std::int64_t{1} << 23;  // of logits: 32 MiB

// Predictions of a chunk of rows of the stream.
class Prediction {
 public:
  Prediction(std::int64_t rows, std::int64_t vocabulary_size)
      : log_probabilities_(Shape{rows, vocabulary_size}),
        log_sums_(static_cast<std::size_t>(rows)) {}

  // From stream (M, C), M up to the capacity.
  void compute(const Transformer& model, View<const float> stream, LensNorm norm) {
    const View<float> logits = log_probabilities_.view().slice(0, 0, stream.extent(0));
    project(model, stream, norm, logits);
    parallel_items(stream.extent(0), [&](std::int64_t row) {
      log_sums_[row] = to_log_probabilities(logits[row].span());
    });
  }

  std::span<const float> log_probabilities(std::int64_t row) const {
    return log_probabilities_.view()[row].span();
  }
  double logit(std::int64_t row, std::int32_t token) const {
    return log_probabilities(row)[token] + log_sums_[row];
  }

 private:
  static void project(const Transformer& model, View<const float> stream, LensNorm norm,
                      View<float> logits) {
    const StackSpecification& stack = model.specification();
    if (norm == LensNorm::none || !stack.final_norm) return model.project(stream, logits);
    const std::int64_t rows = stream.extent(0);
    Tensor<float> normed(stream.shape());
    Tensor<float> mean(Shape{rows});
    Tensor<float> reciprocal(Shape{rows});
    const bool has_mean = stack.block.norm.kind == NormKind::layer;
    normalise(stack, stream, model.parameters().final_norm(),
              {has_mean ? mean.view() : View<float>(), reciprocal}, normed);
    if (stack.logit_scale != 1.0F) {
      for (float& value : normed.span()) value *= stack.logit_scale;
    }
    model.project(normed, logits);
  }

  // In place; returns log Σ exp(logits).
  static double to_log_probabilities(std::span<float> row) {
    const double largest = *std::ranges::max_element(row);
    double sum = 0;
    for (const float logit : row) sum += std::exp(logit - largest);
    const double log_sum = largest + std::log(sum);
    for (float& logit : row) logit = static_cast<float>(logit - log_sum);
    return log_sum;
  }

  Tensor<float> log_probabilities_;  // (rows, V)
  std::vector<double> log_sums_;     // (rows)
};

std::vector<LensToken> likeliest(std::span<const float> log_probabilities, std::int64_t count) {
  std::vector<std::int32_t> order(log_probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<std::int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), end, order.end(), [&](std::int32_t a, std::int32_t b) {
    return log_probabilities[a] != log_probabilities[b]
               ? log_probabilities[a] > log_probabilities[b]
               : a < b;
  });
  std::vector<LensToken> top;
  for (auto token = order.begin(); token != end; ++token) {
    top.push_back({*token, std::exp(double{log_probabilities[*token]})});
  }
  return top;
}

// `followed` −1: no token.
LensCell read_cell(const Prediction& layer, const Prediction& last, std::int64_t row,
                   std::int64_t top, std::int32_t followed) {
  const std::span<const float> mine = layer.log_probabilities(row);
  const std::span<const float> final = last.log_probabilities(row);
  LensCell cell{.top = likeliest(mine, top)};
  for (std::size_t v = 0; v < mine.size(); ++v) {
    cell.entropy -= std::exp(double{mine[v]}) * mine[v];
    cell.divergence += std::exp(double{final[v]}) * (double{final[v]} - mine[v]);
  }
  if (followed < 0) return cell;
  cell.logit = layer.logit(row, followed);
  cell.probability = std::exp(double{mine[followed]});
  cell.rank = std::ranges::count_if(mine, [&](float other) { return other > mine[followed]; });
  return cell;
}

void require_followed(const LensOptions& options, const StackSpecification& config,
                      std::int64_t positions) {
  const auto count = std::ssize(options.followed);
  require(count <= 1 || count == positions, ErrorCode::invalid_argument,
          "{} tokens to follow: expected one, or one for each of {} positions", count, positions);
  for (const std::int32_t token : options.followed) {
    require(token >= 0 && token < config.vocabulary_size, ErrorCode::invalid_argument,
            "token {} is not in the vocabulary of {}", token, config.vocabulary_size);
  }
}

std::int32_t followed_at(const LensOptions& options, std::int64_t position) {
  if (options.followed.empty()) return -1;
  return options.followed.size() == 1 ? options.followed.front() : options.followed[position];
}

std::vector<std::int64_t> chosen_positions(const LensOptions& options, std::int64_t positions) {
  std::vector<std::int64_t> chosen = options.positions;
  if (chosen.empty()) {
    chosen.resize(static_cast<std::size_t>(positions));
    std::iota(chosen.begin(), chosen.end(), 0);
  }
  for (const std::int64_t position : chosen) {
    require(position >= 0 && position < positions, ErrorCode::invalid_argument,
            "position {} is not in a text of {} tokens", position, positions);
  }
  return chosen;
}

// Rows of (T, C) at the given positions.
Tensor<float> rows_at(View<const float> stream, std::span<const std::int64_t> positions) {
  Tensor<float> rows(Shape{std::ssize(positions), stream.extent(1)});
  for (std::size_t row = 0; row < positions.size(); ++row) {
    std::ranges::copy(stream[positions[row]].span(),
                      rows.view()[static_cast<std::int64_t>(row)].data());
  }
  return rows;
}

// The stream of a decoder that attends to an encoder may be normalised at each point.
void require_lens(const Transformer& model) {
  if (model.architecture().is_encoder_decoder()) return;
  require_stream_of_sums(model.specification(), "a logit lens");
}

// The stream (T, C) at a point.
using StreamAt = std::function<View<const float>(const Point&)>;

// For a text of `length` tokens.
LogitLens read_streams(const Transformer& model, std::int64_t length, const StreamAt& stream_at,
                       const LensOptions& options) {
  require_lens(model);
  const StackSpecification& config = model.specification();
  const std::vector<std::int64_t> chosen = chosen_positions(options, length);
  const auto positions = std::ssize(chosen);
  require_followed(options, config, positions);
  LogitLens lens{.points = stream_points(model.architecture()), .positions = positions};
  const auto points = std::ssize(lens.points);
  lens.cells.resize(static_cast<std::size_t>(points * positions));

  const std::int64_t rows =
      std::clamp<std::int64_t>(chunk_elements / config.vocabulary_size, 1, positions);
  Prediction last(rows, config.vocabulary_size);
  Prediction current(rows, config.vocabulary_size);
  for (std::int64_t begin = 0; begin < positions; begin += rows) {
    const std::int64_t end = std::min<std::int64_t>(begin + rows, positions);
    const auto stream = [&](std::int64_t point) {
      return rows_at(stream_at(lens.points[point]),
                     std::span(chosen).subspan(static_cast<std::size_t>(begin),
                                               static_cast<std::size_t>(end - begin)));
    };
    last.compute(model, stream(points - 1), options.norm);
    for (std::int64_t point = 0; point < points; ++point) {
      current.compute(model, stream(point), options.norm);
      parallel_items(end - begin, [&](std::int64_t row) {
        lens.cells[point * positions + begin + row] =
            read_cell(current, last, row, options.top, followed_at(options, begin + row));
      });
    }
  }
  return lens;
}

}  // namespace

LogitLens look_through_layers(const Transformer& model, std::span<const std::int32_t> tokens,
                              const LensOptions& options) {
  const auto chosen = std::ssize(chosen_positions(options, std::ssize(tokens)));
  require_followed(options, model.specification(), chosen);
  Capture streams(stream_points(model.architecture()));
  observe_pass(model, tokens, streams);
  const auto stream_at = [&](const Point& point) {
    return View<const float>(streams.at(point).view()[0]);
  };
  return read_streams(model, std::ssize(tokens), stream_at, options);
}

LogitLens look_through_layers(const RecordedPass& pass, const LensOptions& options) {
  const auto stream_at = [&](const Point& point) { return pass.rows(point); };
  return read_streams(pass.model(), pass.positions(), stream_at, options);
}

}  // namespace heed
