#include "microscope/explain/logit_gradients.h"

#include <algorithm>
#include <cmath>
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

// Multiplies every token's embedding by a factor.
class ScaledEmbedding final : public Editor {
 public:
  explicit ScaledEmbedding(float scale) : scale_(scale) {}

  bool edits(const Point& point) const override { return point.kind == PointKind::embedding; }
  void edit(const EditedPoint&, View<float> values) override {
    for (float& value : values.span()) value *= scale_;
  }

 private:
  float scale_;
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
                                        const LogitMetric& metric, std::int64_t steps) {
  require_sums_to_logits(gpt.config(), "integrated gradients");
  require(steps >= 1, ErrorCode::invalid_argument, "{} steps: expected at least one", steps);
  const auto at = [&](double scale) {
    ScaledEmbedding editor(static_cast<float>(scale));
    return differentiate_logit(gpt, tokens, metric, {{PointKind::embedding}}, &editor);
  };
  const LogitGradients whole = at(1);
  IntegratedGradients result{.tokens = std::vector<double>(tokens.size(), 0.0),
                             .metric = whole.metric,
                             .baseline = at(0).metric};
  const View<const float> embedding = whole.values.front().view()[0];  // (T, C)
  for (const QuadraturePoint& node : gauss_legendre(steps)) {
    const LogitGradients there = at(node.abscissa);
    const View<const float> gradient = there.gradients.front().view()[0];
    for (std::int64_t t = 0; t < embedding.extent(0); ++t) {
      for (std::int64_t c = 0; c < embedding.extent(1); ++c) {
        result.tokens[t] += node.weight * embedding(t, c) * gradient(t, c);
      }
    }
  }
  result.completeness_error = result.baseline - result.metric;
  for (const double value : result.tokens) result.completeness_error += value;
  return result;
}

}  // namespace heed
