#include "microscope/explain/logit_gradients.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/error.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/text_pass.h"
#include "model/editor.h"
#include "model/input_checks.h"
#include "model/joined_editor.h"

namespace heed {
namespace {

// Copies values in forward and gradients in backward.
class GradientProbe final : public Probe {
 public:
  explicit GradientProbe(const std::vector<Point>& points) : values_(points), gradients_(points) {}

  bool wants(const Point& point) const override { return values_.wants(point); }
  void observe(const Point& point, View<const float> values) override {
    values_.observe(point, values);
  }
  bool wants_gradient(const Point& point) const override { return gradients_.wants(point); }
  void observe_gradient(const Point& point, View<const float> values) override {
    gradients_.observe(point, values);
  }

  const Tensor<float>& value(const Point& point) const { return values_.at(point); }
  const Tensor<float>& gradient(const Point& point) const { return gradients_.at(point); }

 private:
  Capture values_;
  Capture gradients_;
};

Tensor<float> copy_of(const Tensor<float>& tensor) {
  Tensor<float> copy(tensor.shape());
  std::ranges::copy(tensor.span(), copy.data());
  return copy;
}

// The metric as a linear function of a row (C) of the final norm's output.
struct MetricRow {
  std::vector<float> gradient;
  double bias = 0;

  double metric(std::span<const float> final_norm_row) const {
    double sum = bias;
    for (std::size_t c = 0; c < gradient.size(); ++c) {
      sum += static_cast<double>(gradient[c]) * final_norm_row[c];
    }
    return sum;
  }
};

MetricRow metric_row(const Gpt& gpt, const LogitQuestion& question) {
  question.validate(gpt.config());
  const LinearWeights& unembedding = gpt.parameters().unembedding();
  MetricRow row{.gradient = std::vector<float>(gpt.config().channels)};
  const auto add = [&](std::int32_t token, float sign) {
    const std::vector<float> weights = kernels::multiplied_row(unembedding, token);
    for (std::size_t c = 0; c < weights.size(); ++c) row.gradient[c] += sign * weights[c];
    if (unembedding.bias.present()) row.bias += sign * unembedding.bias(token);
  };
  add(question.token, 1.0F);
  if (question.against) add(*question.against, -1.0F);
  return row;
}

// Moves every token's embedding x to b + α·(x − b).
class EmbeddingOnPath final : public Editor {
 public:
  // baseline (T, C), or nothing for zero.
  EmbeddingOnPath(View<const float> baseline, double alpha)
      : baseline_(baseline), alpha_(static_cast<float>(alpha)) {}

  bool edits(const Point& point) const override { return point.kind == PointKind::embedding; }
  void edit(const EditedPoint&, View<float> values) override {
    if (alpha_ == 1) return;  // x, to the bit
    const std::span<float> all = values.span();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float from = baseline_.present() ? baseline_.data()[i] : 0.0F;
      all[i] = from + alpha_ * (all[i] - from);
    }
  }

 private:
  View<const float> baseline_;
  float alpha_;
};

struct QuadraturePoint {
  double abscissa;  // in [0, 1]
  double weight;    // all of them sum to one
};

// Gauss-Legendre: the roots of the Legendre polynomial P_n, by Newton's method from the usual first
// guess cos(π(i + 3/4)/(n + 1/2)), moved from [−1, 1] to [0, 1].
std::vector<QuadraturePoint> gauss_legendre(std::int64_t count) {
  std::vector<QuadraturePoint> points;
  for (std::int64_t i = 0; i < count; ++i) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) /
                        (static_cast<double>(count) + 0.5));
    double derivative = 1;
    for (int iteration = 0; iteration < 100; ++iteration) {
      double before = 1;  // P_0
      double current = x;
      for (std::int64_t n = 2; n <= count; ++n) {
        const double next =
            (static_cast<double>(2 * n - 1) * x * current - static_cast<double>(n - 1) * before) /
            static_cast<double>(n);
        before = current;
        current = next;
      }
      derivative = static_cast<double>(count) * (x * current - before) / (x * x - 1);
      const double step = current / derivative;
      x -= step;
      if (std::abs(step) < 1e-15) break;
    }
    points.push_back({(x + 1) / 2, 1 / ((1 - x * x) * derivative * derivative)});
  }
  return points;
}

// The powers of ten at which the intervals of a path end, 1 the last: [0, 10^-k], …, [0.1, 1].
// Below 10^-k the metric is that of α = 0. Each norm of a block can multiply what is near zero by
// 1/√ε, so that a deep model may turn at 1e-12.
std::vector<double> interval_ends(const std::function<double(double)>& metric_at) {
  constexpr int most_decades = 30;     // α · x stays a normal float
  constexpr double negligible = 2e-3;  // of the range of the metric
  const double start = metric_at(0);
  std::vector<double> ends;
  double range = 0;
  int settled = 0;
  for (int decade = 0; decade <= most_decades && settled < 2; ++decade) {
    ends.push_back(std::pow(10.0, -decade));
    const double moved = std::abs(metric_at(ends.back()) - start);
    range = std::max(range, moved);
    settled = moved <= negligible * range ? settled + 1 : 0;
  }
  std::ranges::reverse(ends);
  return ends;
}

std::vector<QuadraturePoint> points_of_path(const std::vector<double>& ends, std::int64_t steps) {
  const std::vector<QuadraturePoint> unit = gauss_legendre(steps);
  std::vector<QuadraturePoint> points;
  double begin = 0;
  for (const double end : ends) {
    for (const QuadraturePoint& point : unit) {
      points.push_back({begin + (end - begin) * point.abscissa, (end - begin) * point.weight});
    }
    begin = end;
  }
  return points;
}

// (T, C): where the path begins; of no elements for zero.
Tensor<float> baseline_embedding(const Gpt& gpt, std::int64_t positions,
                                 const AttributionBaseline& baseline) {
  const StackSpecification& config = gpt.config();
  if (baseline.kind == AttributionBaseline::Kind::zero) return {};
  Tensor<float> rows(Shape{positions, config.channels});
  const View<const float> table = gpt.parameters().token_embedding();
  if (baseline.kind == AttributionBaseline::Kind::mean) {
    for (std::int64_t c = 0; c < config.channels; ++c) {
      double sum = 0;
      for (std::int64_t token = 0; token < config.vocabulary_size; ++token) sum += table(token, c);
      const double mean = sum / static_cast<double>(config.vocabulary_size);
      for (std::int64_t t = 0; t < positions; ++t) {
        rows.view()(t, c) = static_cast<float>(mean * config.embedding_scale);
      }
    }
    return rows;
  }
  const std::vector<std::int32_t>& tokens = baseline.tokens;
  require(tokens.size() == 1 || std::ssize(tokens) == positions, ErrorCode::invalid_argument,
          "the baseline has {} tokens and the text {}: expected as many, or one for all positions",
          tokens.size(), positions);
  for (std::int64_t t = 0; t < positions; ++t) {
    const std::int32_t token = tokens[tokens.size() == 1 ? 0 : static_cast<std::size_t>(t)];
    require(token >= 0 && token < config.vocabulary_size, ErrorCode::invalid_argument,
            "token {} of the baseline is outside the vocabulary of {}", token,
            config.vocabulary_size);
    for (std::int64_t c = 0; c < config.channels; ++c) {
      rows.view()(t, c) = config.embedding_scale * table(token, c);
    }
  }
  return rows;
}

// The rounding of f32 passes is far below 1e-4 of what the attributions add and take away.
void require_complete(const IntegratedGradients& found, std::int64_t steps) {
  const double change = found.metric - found.baseline;
  double total = 0;
  for (const double value : found.tokens) total += std::abs(value);
  const double allowed = std::max(0.05 * std::abs(change), 1e-4 * total);
  require(std::abs(found.completeness_error) <= allowed, ErrorCode::unsupported,
          "integrated gradients with {} steps between powers of ten sum to {:.4g} where the logit "
          "changes by {:.4g}, more "
          "than 5 % off: take more steps, or another baseline",
          steps, change + found.completeness_error, change);
}

// The metric of a pass that `editor` edits, without backward.
double metric_of(const Gpt& gpt, std::span<const std::int32_t> tokens, const LogitMetric& metric,
                 Editor& editor) {
  const auto positions = std::ssize(tokens);
  const GptActivations activations(gpt.config(), 1, positions, Keep::one_block);
  gpt.forward(View<const std::int32_t>(tokens.data(), {1, positions}),
              {.positions = positions, .editor = &editor}, activations);
  return metric_row(gpt, metric.question)
      .metric(activations.final_norm()[position_in_text(metric.position, positions)].span());
}

// (…, K) of two tensors: Σ over the last dimension of (a − b)·c.
Tensor<float> sum_of_last(const Tensor<float>& a, const Tensor<float>& b, const Tensor<float>& c) {
  const Shape& shape = a.shape();
  const std::int64_t width = shape[shape.rank() - 1];
  Tensor<float> sums(Shape(shape.begin(), shape.rank() - 1));
  for (std::int64_t row = 0; row < sums.size(); ++row) {
    double sum = 0;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
      sum += (double{a[i]} - b[i]) * c[i];
    }
    sums[row] = static_cast<float>(sum);
  }
  return sums;
}

}  // namespace

LogitGradients differentiate_logit(const Gpt& gpt, std::span<const std::int32_t> tokens,
                                   const LogitMetric& metric, std::vector<Point> points,
                                   Editor* editor) {
  require_sums_to_logits(gpt.config(), "a gradient of logits");
  const StackSpecification& config = gpt.config();
  require_text_fits(config, tokens);
  const auto positions = std::ssize(tokens);
  const std::int64_t position = position_in_text(metric.position, positions);
  const MetricRow row = metric_row(gpt, metric.question);
  for (const Point& point : points) require_point(config, point);

  GradientProbe probe(points);
  const View<const std::int32_t> batch(tokens.data(), {1, positions});
  const EditorOfPass of_pass(gpt.editor(), editor);
  const Pass pass{.positions = positions, .probe = &probe, .editor = of_pass.get()};
  const GptActivations activations(config, 1, positions, Keep::every_block);
  gpt.forward(batch, pass, activations);
  // After the pass: functions of the user show only then which values they change.
  require_gradients_past(of_pass.get(), {.stacks = {config}}, [&](const Point& point) {
    return std::ranges::find(points, point) != points.end();
  });
  const GptActivationGradients buffers(config, positions);
  std::ranges::fill(buffers.norm.span(), 0.0F);
  std::ranges::copy(row.gradient, &buffers.norm(position, 0));
  gpt.backward(batch, pass, activations, buffers, nullptr);
  if (pass.wants_gradient(PointKind::logits, -1)) {
    Tensor<float> d_logits(Shape{positions, config.vocabulary_size});
    d_logits.view()(position, metric.question.token) += 1.0F;
    if (metric.question.against) d_logits.view()(position, *metric.question.against) -= 1.0F;
    pass.observe_gradient_rows(PointKind::logits, -1, d_logits);
  }

  LogitGradients result{.metric = row.metric(activations.final_norm()[position].span()),
                        .points = std::move(points)};
  for (const Point& point : result.points) {
    result.values.push_back(copy_of(probe.value(point)));
    result.gradients.push_back(copy_of(probe.gradient(point)));
  }
  return result;
}

AttributionPatching estimate_patching(const Gpt& gpt, std::span<const std::int32_t> clean,
                                      std::span<const std::int32_t> corrupted,
                                      const LogitMetric& metric, const std::vector<Point>& points) {
  require_sums_to_logits(gpt.config(), "estimated patching");
  require(clean.size() == corrupted.size(), ErrorCode::invalid_argument,
          "the texts have {} and {} tokens; patching needs texts of equal length", clean.size(),
          corrupted.size());
  for (const Point& point : points) {
    require(point.kind != PointKind::scores, ErrorCode::invalid_argument,
            "'{}' contains −∞, which has no differences; use the pattern", point_name(point));
  }
  const LogitGradients from = differentiate_logit(gpt, corrupted, metric, points);
  Capture to(points);
  const GptActivations activations = run_text(gpt, clean, to);
  const std::int64_t position = position_in_text(metric.position, std::ssize(clean));
  AttributionPatching result{
      .clean_metric = metric_row(gpt, metric.question)
                          .metric(View<const float>(activations.final_norm())[position].span()),
      .corrupted_metric = from.metric,
      .points = points};
  for (std::size_t i = 0; i < points.size(); ++i) {
    result.effects.push_back(sum_of_last(to.at(points[i]), from.values[i], from.gradients[i]));
  }
  return result;
}

IntegratedGradients integrate_gradients(const Gpt& gpt, std::span<const std::int32_t> tokens,
                                        const LogitMetric& metric,
                                        const IntegrationOptions& options) {
  require_sums_to_logits(gpt.config(), "integrated gradients");
  require(options.steps >= 1, ErrorCode::invalid_argument, "{} steps: expected at least one",
          options.steps);
  require_text_fits(gpt.config(), tokens);
  const Tensor<float> start = baseline_embedding(gpt, std::ssize(tokens), options.baseline);
  const View<const float> from = start.size() > 0 ? View<const float>(start) : View<const float>();
  const auto at = [&](double alpha) {
    EmbeddingOnPath editor(from, alpha);
    return differentiate_logit(gpt, tokens, metric, {{PointKind::embedding}}, &editor);
  };
  const auto metric_at = [&](double alpha) {
    EmbeddingOnPath editor(from, alpha);
    return metric_of(gpt, tokens, metric, editor);
  };
  const LogitGradients whole = at(1);
  IntegratedGradients result{.tokens = std::vector<double>(tokens.size(), 0.0),
                             .metric = whole.metric,
                             .baseline = metric_at(0)};
  const View<const float> embedding = whole.values.front().view()[0];  // (T, C)
  for (const QuadraturePoint& node : points_of_path(interval_ends(metric_at), options.steps)) {
    const LogitGradients there = at(node.abscissa);
    const View<const float> gradient = there.gradients.front().view()[0];
    for (std::int64_t t = 0; t < embedding.extent(0); ++t) {
      for (std::int64_t c = 0; c < embedding.extent(1); ++c) {
        const double begin = from.present() ? from(t, c) : 0.0F;
        result.tokens[t] += node.weight * (embedding(t, c) - begin) * gradient(t, c);
      }
    }
  }
  result.completeness_error = result.baseline - result.metric;
  for (const double value : result.tokens) result.completeness_error += value;
  require_complete(result, options.steps);
  return result;
}

}  // namespace heed
