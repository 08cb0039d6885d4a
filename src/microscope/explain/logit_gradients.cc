#include "microscope/explain/logit_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/gradients.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/editor.h"
#include "model/here.h"
#include "model/input_checks.h"

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

MetricRow metric_row(const Transformer& model, const LogitQuestion& question) {
  question.validate(model.specification());
  const LinearWeights& unembedding = model.parameters().unembedding();
  MetricRow row{.gradient = std::vector<float>(model.specification().channels)};
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

struct PathPoint {
  double alpha;
  double metric;
};

// 0 and the powers of ten at which the intervals of a path end, 1 the last. Below the first power
// the metric is that of α = 0. Each norm of a block can multiply what is near zero by 1/√ε, so that
// a deep model may turn at 1e-12.
std::vector<PathPoint> interval_ends(const std::function<double(double)>& metric_at) {
  constexpr int max_decades = 30;      // α · x stays a normal float
  constexpr double negligible = 2e-3;  // of the range of the metric
  const double start = metric_at(0);
  std::vector<PathPoint> ends;
  double range = 0;
  int settled = 0;
  for (int decade = 0; decade <= max_decades && settled < 2; ++decade) {
    const double alpha = std::pow(10.0, -decade);
    ends.push_back({alpha, metric_at(alpha)});
    const double moved = std::abs(ends.back().metric - start);
    range = std::max(range, moved);
    settled = moved <= negligible * range ? settled + 1 : 0;
  }
  ends.push_back({0, start});
  std::ranges::reverse(ends);
  return ends;
}

// (T, C): where the path begins; of no elements for zero.
Tensor<float> baseline_embedding(const Transformer& model, std::int64_t positions,
                                 const AttributionBaseline& baseline) {
  const StackSpecification& config = model.specification();
  if (baseline.kind == AttributionBaseline::Kind::zero) return {};
  Tensor<float> rows(Shape{positions, config.channels});
  const View<const float> table = model.parameters().token_embedding();
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
double metric_of(const Transformer& model, std::span<const std::int32_t> tokens,
                 const LogitMetric& metric, Editor& editor) {
  const auto positions = std::ssize(tokens);
  const StackActivations activations(model.specification(), 1, positions, Keep::one_block, 0,
                                     model.device());
  model.forward(View<const std::int32_t>(tokens.data(), {1, positions}),
                {.sequences = {1, positions}, .editor = &editor}, activations);
  const Here row(activations.final_norm()[position_in_text(metric.position, positions)]);
  return metric_row(model, metric.question).metric(row.values().span());
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

LogitGradients differentiate_logit(const Transformer& model, const Texts& texts,
                                   const LogitMetric& metric, std::vector<Point> points,
                                   Editor* editor) {
  const Architecture& architecture = model.architecture();
  if (!architecture.is_encoder_decoder()) {
    require_sums_to_logits(model.specification(), "a gradient of logits");
  }
  require_texts_fit(architecture, texts);
  const std::int64_t position = position_in_text(metric.position, std::ssize(texts.target));
  const MetricRow row = metric_row(model, metric.question);
  for (const Point& point : points) require_point(architecture, point);

  GradientProbe probe(points);
  const RecordedPass pass(model, texts, borrowed_editor(editor), {.observer = &probe});
  GradientTarget target{.logits = {{position, metric.question.token, 1}}};
  if (metric.question.against) {
    target.logits.push_back({position, *metric.question.against, -1});
  }
  pass.backward(target, probe);

  LogitGradients result{.metric = row.metric(pass.final_rows()[position].span()),
                        .points = std::move(points)};
  for (const Point& point : result.points) {
    result.values.push_back(copy_of(probe.value(point)));
    result.gradients.push_back(copy_of(probe.gradient(point)));
  }
  return result;
}

AttributionPatching estimate_patching(const Transformer& model, const Texts& clean,
                                      const Texts& corrupted, const LogitMetric& metric,
                                      const std::vector<Point>& points) {
  if (!model.architecture().is_encoder_decoder()) {
    require_sums_to_logits(model.specification(), "estimated patching");
  }
  require(clean.source.size() == corrupted.source.size() &&
              clean.target.size() == corrupted.target.size(),
          ErrorCode::invalid_argument,
          "the texts have {} and {} tokens; patching needs texts of equal length",
          clean.source.size() + clean.target.size(),
          corrupted.source.size() + corrupted.target.size());
  for (const Point& point : points) {
    require(!is_scores_point(point.kind), ErrorCode::invalid_argument,
            "'{}' contains −∞, which has no differences; use the pattern", point_name(point));
  }
  const LogitGradients from = differentiate_logit(model, corrupted, metric, points);
  Capture to(points);
  const RecordedPass pass(model, clean, {}, {.keep = Keep::one_block, .observer = &to});
  const std::int64_t position = position_in_text(metric.position, pass.positions());
  AttributionPatching result{
      .clean_metric = metric_row(model, metric.question).metric(pass.final_rows()[position].span()),
      .corrupted_metric = from.metric,
      .points = points};
  for (std::size_t i = 0; i < points.size(); ++i) {
    result.effects.push_back(sum_of_last(to.at(points[i]), from.values[i], from.gradients[i]));
  }
  return result;
}

namespace {

// The path of integrated gradients, and the integral over parts of it.
class EmbeddingPath {
 public:
  EmbeddingPath(const Transformer& model, std::span<const std::int32_t> tokens,
                const LogitMetric& metric, const IntegrationOptions& options)
      : model_(model),
        tokens_(tokens),
        metric_(metric),
        start_(baseline_embedding(model, std::ssize(tokens), options.baseline)),
        unit_(gauss_legendre(options.steps)),
        step_(std::move(at(1).values.front())) {
    for (std::int64_t i = 0; i < start_.size(); ++i) step_[i] -= start_[i];
  }

  // A part of the path, with the integral over it.
  struct Piece {
    double begin = 0, end = 0;
    double metric_begin = 0, metric_end = 0;
    std::vector<double> tokens;  // (T)

    // What the tokens miss of the change of the metric.
    double error() const {
      return std::accumulate(tokens.begin(), tokens.end(), metric_begin - metric_end);
    }
  };

  double metric_at(double alpha) const {
    EmbeddingOnPath editor(start(), alpha);
    return metric_of(model_, tokens_, metric_, editor);
  }

  Piece integrated(Piece piece) const {
    piece.tokens.assign(tokens_.size(), 0.0);
    const std::int64_t channels = step_.size() / std::ssize(tokens_);
    const double length = piece.end - piece.begin;
    for (const QuadraturePoint& point : unit_) {
      const LogitGradients there = at(piece.begin + length * point.abscissa);
      for (std::int64_t i = 0; i < step_.size(); ++i) {
        piece.tokens[static_cast<std::size_t>(i / channels)] +=
            length * point.weight * step_[i] * there.gradients.front()[i];
      }
    }
    return piece;
  }

  std::array<Piece, 2> halves(const Piece& whole) const {
    const double middle = (whole.begin + whole.end) / 2;
    const double metric = metric_at(middle);
    return {integrated({whole.begin, middle, whole.metric_begin, metric, {}}),
            integrated({middle, whole.end, metric, whole.metric_end, {}})};
  }

 private:
  View<const float> start() const {
    return start_.size() > 0 ? start_.view() : View<const float>();
  }
  LogitGradients at(double alpha) const {
    EmbeddingOnPath editor(start(), alpha);
    return differentiate_logit(model_, tokens_, metric_, {{PointKind::embedding}}, &editor);
  }

  const Transformer& model_;
  std::span<const std::int32_t> tokens_;
  LogitMetric metric_;
  Tensor<float> start_;  // (T, C), or of no elements for zero
  std::vector<QuadraturePoint> unit_;
  Tensor<float> step_;  // (1, T, C): from the start to the text
};

}  // namespace

IntegratedGradients integrate_gradients(const Transformer& model,
                                        std::span<const std::int32_t> tokens,
                                        const LogitMetric& metric,
                                        const IntegrationOptions& options) {
  require_sums_to_logits(model.specification(), "integrated gradients");
  require(options.steps >= 1, ErrorCode::invalid_argument, "{} steps: expected at least one",
          options.steps);
  require_text_fits(model.specification(), tokens);
  const EmbeddingPath path(model, tokens, metric, options);
  const std::vector<PathPoint> ends =
      interval_ends([&](double alpha) { return path.metric_at(alpha); });
  std::vector<EmbeddingPath::Piece> pieces;
  double range = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) {
    pieces.push_back(path.integrated(
        {ends[i - 1].alpha, ends[i].alpha, ends[i - 1].metric, ends[i].metric, {}}));
    range = std::max(range, std::abs(ends[i].metric - ends.front().metric));
  }
  // f32 passes round a metric to about 1e-6 of it.
  const double change = ends.back().metric - ends.front().metric;
  const double enough = std::max(1e-3 * std::abs(change), 1e-5 * range);
  const auto missed = [](const auto& piece) { return std::abs(piece.error()); };
  for (std::int64_t halving = 0; halving < options.steps; ++halving) {
    double all_missed = 0;
    for (const auto& piece : pieces) all_missed += missed(piece);
    if (all_missed <= enough) break;
    const auto worst = std::ranges::max_element(pieces, {}, missed);
    auto [first, second] = path.halves(*worst);
    *worst = std::move(first);
    pieces.push_back(std::move(second));
  }
  IntegratedGradients result{.tokens = std::vector<double>(tokens.size(), 0.0),
                             .metric = ends.back().metric,
                             .baseline = ends.front().metric};
  for (const auto& piece : pieces) {
    for (std::size_t t = 0; t < tokens.size(); ++t) result.tokens[t] += piece.tokens[t];
  }
  result.completeness_error = std::accumulate(result.tokens.begin(), result.tokens.end(), -change);
  require_complete(result, options.steps);
  return result;
}

}  // namespace heed
