#include "microscope/explain/logit_gradients.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "generate/random_transformer.h"
#include "microscope/explain/nudge.h"
#include "microscope/families.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

using testing::Nudge;

class LogitGradient : public ::testing::Test {
 protected:
  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 3);
  const LogitMetric metric{{7, 23}, -1};
};

TEST_F(LogitGradient, MetricIsTheModels) {
  const Tensor<float> logits = testing::full_logits(transformer, tokens);
  const LogitGradients found = differentiate_logit(transformer, tokens, metric, {});
  EXPECT_NEAR(found.metric, logits.view()(8, 7) - logits.view()(8, 23), 1e-5);
}

// Central differences of a float pass: a step of 2e-3 loses about 1e-6/4e-3 to rounding, and to the
// curvature of a norm over embeddings of length about one somewhat more.
TEST_F(LogitGradient, AgreesWithFiniteDifferences) {
  const std::vector<Point> points{{PointKind::embedding},       {PointKind::residual_mid, 1},
                                  {PointKind::attention_in, 1}, {PointKind::query_input, 1},
                                  {PointKind::key_input, 0},    {PointKind::value_input, 2},
                                  {PointKind::head_results, 1}, {PointKind::feed_forward_in, 1},
                                  {PointKind::neurons_post, 0}, {PointKind::feed_forward_out, 2},
                                  {PointKind::unembedding_in}};
  const LogitGradients found = differentiate_logit(transformer, tokens, metric, points);
  constexpr float step = 2e-3F;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const auto& [position, channel] : {std::pair{0, 3}, std::pair{8, 11}}) {
      Nudge up(points[i], position, channel, step);
      Nudge down(points[i], position, channel, -step);
      const double difference =
          (differentiate_logit(transformer, tokens, metric, {}, &up).metric -
           differentiate_logit(transformer, tokens, metric, {}, &down).metric) /
          (2 * step);
      const View<const float> row = found.gradients[i].view()[0][position];
      const double gradient = (row.rank() == 2 ? row[2] : row)(channel);
      EXPECT_NEAR(gradient, difference, 2e-3 * std::max(1.0, std::abs(difference)))
          << point_name(points[i]);
    }
  }
}

TEST_F(LogitGradient, OfTheLogitsIsTheMetric) {
  const LogitGradients found =
      differentiate_logit(transformer, tokens, metric, {{PointKind::logits}});
  const View<const float> values = found.values[0].view()[0],
                          gradients = found.gradients[0].view()[0];
  EXPECT_NEAR(values(8, 7) - values(8, 23), found.metric, 1e-5);
  for (std::int64_t t = 0; t < 9; ++t) {
    for (std::int64_t token = 0; token < 61; ++token) {
      const float expected = t < 8 ? 0.0F : token == 7 ? 1.0F : token == 23 ? -1.0F : 0.0F;
      EXPECT_EQ(gradients(t, token), expected);
    }
  }
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST_F(LogitGradient, IntegratedGradientsAreComplete) {
  const IntegratedGradients found = integrate_gradients(transformer, tokens, metric);
  const double change = found.metric - found.baseline;
  EXPECT_NEAR(sum_of(found.tokens), change + found.completeness_error, 1e-9);
  EXPECT_LE(std::abs(found.completeness_error), 1e-3 * std::abs(change));
}

// Multiplies every embedding.
class Scaled final : public Editor {
 public:
  explicit Scaled(double scale) : scale_(static_cast<float>(scale)) {}
  bool edits(const Point& point) const override { return point.kind == PointKind::embedding; }
  void edit(const EditedPoint&, View<float> values) override {
    for (float& value : values.span()) value *= scale_;
  }

 private:
  float scale_;
};

// RMS norms, no position vectors, no biases, and embeddings of a length that norms forget: nearly
// all that depends on α does so within 1e-3 of zero.
class SpikedPath : public LogitGradient {
 protected:
  static Transformer spiked() {
    Transformer model = testing::toy_transformer(testing::toy_llama(24));
    const View<float> table = model.parameters().tensor({Role::token_embedding});
    for (float& value : table.span()) value *= 40.0F;
    return model;
  }

  const Transformer llama = spiked();
};

// Beside Simpson's rule in ln α, which shares nothing with the quadrature: α·∂metric/∂α of each
// token, from 1e-14 to 1 in 3,200 steps, each 1 % of α.
TEST_F(SpikedPath, IntegratedGradientsReachTheirTrueSum) {
  const IntegratedGradients found = integrate_gradients(llama, tokens, metric, {.steps = 24});
  const double change = found.metric - found.baseline;
  ASSERT_GT(std::abs(change), 0.1);
  EXPECT_LT(std::abs(found.completeness_error), 1e-3 * std::abs(change));
  const IntegratedGradients usual = integrate_gradients(llama, tokens, metric);
  EXPECT_LT(std::abs(usual.completeness_error), 0.02 * std::abs(change));

  constexpr int intervals = 3200;
  const double from = std::log(1e-14), step = -from / intervals;
  std::vector<double> expected(tokens.size());
  Tensor<float> embedding;
  for (int i = intervals; i >= 0; --i) {
    const double alpha = std::exp(from + step * i);
    Scaled editor(alpha);
    LogitGradients there =
        differentiate_logit(llama, tokens, metric, {{PointKind::embedding}}, &editor);
    if (i == intervals) embedding = std::move(there.values[0]);
    const double weight = step / 3 * (i == 0 || i == intervals ? 1 : i % 2 == 1 ? 4 : 2);
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      for (std::int64_t c = 0; c < 32; ++c) {
        const std::int64_t at = static_cast<std::int64_t>(t) * 32 + c;
        expected[t] += weight * alpha * embedding[at] * there.gradients[0][at];
      }
    }
  }
  double total = 0;
  for (const double value : expected) total += std::abs(value);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    EXPECT_NEAR(found.tokens[t], expected[t], 2e-3 * total) << t;
  }
}

TEST_F(SpikedPath, AttributionsThatMissTheirSumAreRefused) {
  try {
    integrate_gradients(llama, tokens, metric, {.steps = 1});
    FAIL() << "one step missed nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("take more steps, or another baseline"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(LogitGradient, IntegratedGradientsBeginAtTheirBaseline) {
  using Kind = AttributionBaseline::Kind;
  const std::vector<std::int32_t> others = testing::random_tokens(9, 61, 8);
  const auto of = [&](AttributionBaseline baseline) {
    const IntegratedGradients found =
        integrate_gradients(transformer, tokens, metric, {.baseline = std::move(baseline)});
    EXPECT_NEAR(sum_of(found.tokens), found.metric - found.baseline,
                1e-3 * std::abs(found.metric - found.baseline));
    return found;
  };
  const auto metric_of = [&](const std::vector<std::int32_t>& text) {
    return differentiate_logit(transformer, text, metric, {}).metric;
  };
  EXPECT_NEAR(of({Kind::tokens, others}).baseline, metric_of(others), 1e-5);
  EXPECT_NEAR(of({Kind::tokens, {5}}).baseline, metric_of(std::vector<std::int32_t>(9, 5)), 1e-5);
  // The mean of all embeddings, taken of what a text of every token reads.
  std::vector<double> mean(32);
  for (std::int32_t token = 0; token < 61; ++token) {
    const LogitGradients one = differentiate_logit(transformer, std::vector<std::int32_t>{token},
                                                   {{7}}, {{PointKind::embedding}});
    for (std::int64_t c = 0; c < 32; ++c)
      mean[static_cast<std::size_t>(c)] += one.values[0][c] / 61;
  }
  class Fixed final : public Editor {
   public:
    explicit Fixed(const std::vector<double>& row) : row_(row) {}
    bool edits(const Point& point) const override { return point.kind == PointKind::embedding; }
    void edit(const EditedPoint&, View<float> values) override {
      for (std::int64_t i = 0; i < values.size(); ++i) {
        values.data()[i] = static_cast<float>(row_[static_cast<std::size_t>(i % 32)]);
      }
    }

   private:
    const std::vector<double>& row_;
  } fixed(mean);
  EXPECT_NEAR(of({Kind::mean, {}}).baseline,
              differentiate_logit(transformer, tokens, metric, {}, &fixed).metric, 1e-5);
  const auto baseline = [](std::vector<std::int32_t> ids) {
    return IntegrationOptions{.baseline = {Kind::tokens, std::move(ids)}};
  };
  EXPECT_THROW(integrate_gradients(transformer, tokens, metric, baseline({1, 2})), Error);
  EXPECT_THROW(integrate_gradients(transformer, tokens, metric, baseline({61})), Error);
  EXPECT_THROW(integrate_gradients(transformer, tokens, metric, baseline({})), Error);
}

// The effect of a small difference is the difference of the metrics, whose sum over positions the
// estimate is at the first stream.
TEST_F(LogitGradient, PatchingIsExactToFirstOrder) {
  Transformer linear = testing::random_transformer(testing::small_config());
  std::vector<std::int32_t> other = tokens;
  other[4] = (other[4] + 1) % 61;
  // Tokens 0 apart by little: the embedding of the other is nearly this one's.
  const View<float> table = linear.parameters().tensor(testing::gpt2_parameter("wte.weight"));
  for (std::int64_t c = 0; c < 32; ++c) {
    table(other[4], c) = table(tokens[4], c) + 1e-3F * static_cast<float>(std::sin(c));
  }
  const std::vector<Point> points{
      {PointKind::embedding}, {PointKind::residual_pre, 0}, {PointKind::mixed_values, 1}};
  const AttributionPatching found =
      estimate_patching(linear, {{}, tokens}, {{}, other}, metric, points);
  const double change = found.clean_metric - found.corrupted_metric;
  ASSERT_GT(std::abs(change), 1e-4);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found.effects[i].shape(), (Shape{1, 9}));
    for (std::int64_t t = 0; t < 9; ++t) {
      const double expected = t == 4 ? change : 0;
      EXPECT_NEAR(found.effects[i][t], expected, 0.02 * std::abs(change));
    }
  }
  EXPECT_EQ(found.effects[2].shape(), (Shape{1, 9, 4}));
}

TEST_F(LogitGradient, RefusesWhatIsNotThere) {
  EXPECT_THROW(differentiate_logit(transformer, tokens, {{61}}, {}), Error);
  EXPECT_THROW(differentiate_logit(transformer, tokens, {{1}, 9}, {}), Error);
  EXPECT_THROW(differentiate_logit(transformer, std::vector<std::int32_t>{}, {{1}}, {}), Error);
  EXPECT_THROW(integrate_gradients(transformer, tokens, metric, {.steps = 0}), Error);
  EXPECT_THROW(
      estimate_patching(transformer, {{}, tokens}, {{}, {1, 2}}, metric, {{PointKind::embedding}}),
      Error);
  EXPECT_THROW(
      estimate_patching(transformer, {{}, tokens}, {{}, tokens}, metric, {{PointKind::scores, 0}}),
      Error);
}

}  // namespace
}  // namespace heed
