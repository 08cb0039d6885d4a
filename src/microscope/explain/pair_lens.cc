#include "microscope/explain/pair_lens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "model/stages.h"

namespace heed {
namespace {

// The stream that each block reads, and that after the last block.
std::vector<Point> decoder_stream(const StackSpecification& stack) {
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    points.push_back({PointKind::residual_pre, layer, StackSite::decoder});
  }
  points.push_back(
      {stack.is_post_norm() ? PointKind::normalized_residual_post : PointKind::residual_post,
       stack.layers - 1, StackSite::decoder});
  return points;
}

// Logits (1, V) of a row of the stream (1, C).
Tensor<float> logits_of_stream(const Stack& stack, View<const float> row, std::int64_t positions) {
  const StackSpecification& specification = stack.specification;
  Tensor<float> end(row.shape());
  std::ranges::copy(row.span(), end.data());
  if (specification.final_norm) {
    Tensor<float> mean(Shape{1}), reciprocal(Shape{1});
    const bool has_mean = specification.block.norm.kind == NormKind::layer;
    normalise(specification, row, stack.parameters.final_norm,
              {has_mean ? mean.view() : View<float>(), reciprocal}, end);
    for (float& value : end.span()) value *= specification.logit_scale;
  }
  Tensor<float> logits(Shape{1, specification.vocabulary_size});
  unembed(stack, end, logits, positions);
  return logits;
}

std::vector<LensToken> likeliest_of(const std::vector<double>& probabilities, std::int64_t count) {
  std::vector<std::int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](std::int32_t token) {
    return probabilities[static_cast<std::size_t>(token)];
  });
  order.resize(static_cast<std::size_t>(std::min(count, std::ssize(order))));
  std::vector<LensToken> top;
  for (const std::int32_t token : order) {
    top.push_back({token, probabilities[static_cast<std::size_t>(token)]});
  }
  return top;
}

}  // namespace

std::vector<PairLensRow> look_through_decoder(const PairPass& pass,
                                              const PairLensOptions& options) {
  const Stack stack = pass.model().stack(StackSite::decoder);
  require(options.position >= 0 && options.position < pass.targets(), ErrorCode::invalid_argument,
          "position {} does not exist: the target has positions 0 to {}", options.position,
          pass.targets() - 1);
  require(options.followed >= -1 && options.followed < stack.specification.vocabulary_size,
          ErrorCode::invalid_argument, "token {} is not in the vocabulary of {}", options.followed,
          stack.specification.vocabulary_size);
  const std::vector<Point> points = decoder_stream(stack.specification);
  Capture capture(points);
  pass.replay(capture);
  std::vector<PairLensRow> rows;
  for (const Point& point : points) {
    const View<const float> stream =
        capture.at(point).view()[0].slice(0, options.position, options.position + 1);
    const std::vector<double> probabilities =
        probabilities_of(logits_of_stream(stack, stream, pass.targets()).span());
    PairLensRow& row = rows.emplace_back();
    row.point = point;
    row.top = likeliest_of(probabilities, options.top);
    for (const double probability : probabilities) {
      if (probability > 0) row.entropy -= probability * std::log(probability);
    }
    if (options.followed >= 0) {
      row.probability = probabilities[static_cast<std::size_t>(options.followed)];
    }
  }
  return rows;
}

}  // namespace heed
