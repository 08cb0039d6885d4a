#include "microscope/explain/logit_gradients.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "generate/random_gpt.h"
#include "microscope/explain/nudge.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

using testing::Nudge;

class LogitGradient : public ::testing::Test {
 protected:
  const Gpt gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 3);
  const LogitMetric metric{{7, 23}, -1};
};

TEST_F(LogitGradient, MetricIsTheModels) {
  const Tensor<float> logits = testing::full_logits(gpt, tokens);
  const LogitGradients found = differentiate_logit(gpt, tokens, metric, {});
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
  const LogitGradients found = differentiate_logit(gpt, tokens, metric, points);
  constexpr float step = 2e-3F;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (const auto& [position, channel] : {std::pair{0, 3}, std::pair{8, 11}}) {
      Nudge up(points[i], position, channel, step);
      Nudge down(points[i], position, channel, -step);
      const double difference = (differentiate_logit(gpt, tokens, metric, {}, &up).metric -
                                 differentiate_logit(gpt, tokens, metric, {}, &down).metric) /
                                (2 * step);
      const View<const float> row = found.gradients[i].view()[0][position];
      const double gradient = (row.rank() == 2 ? row[2] : row)(channel);
      EXPECT_NEAR(gradient, difference, 2e-3 * std::max(1.0, std::abs(difference)))
          << point_name(points[i]);
    }
  }
}

TEST_F(LogitGradient, OfTheLogitsIsTheMetric) {
  const LogitGradients found = differentiate_logit(gpt, tokens, metric, {{PointKind::logits}});
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

TEST_F(LogitGradient, IntegratedGradientsAreComplete) {
  double before = 1e9;
  for (const std::int64_t steps : {16, 64, 256}) {
    const IntegratedGradients found = integrate_gradients(gpt, tokens, metric, steps);
    double sum = 0;
    for (const double value : found.tokens) sum += value;
    EXPECT_NEAR(sum, found.metric - found.baseline + found.completeness_error, 1e-9);
    EXPECT_LT(std::abs(found.completeness_error), before);
    before = std::abs(found.completeness_error);
  }
  RecordProperty("error_of_256_steps", fmt::format("{:.1e}", before));
  EXPECT_LT(before, 1e-5);  // of a metric that moves by about one
}

// The effect of a small difference is the difference of the metrics, whose sum over positions the
// estimate is at the first stream.
TEST_F(LogitGradient, PatchingIsExactToFirstOrder) {
  Gpt linear = testing::random_gpt(testing::small_config());
  std::vector<std::int32_t> other = tokens;
  other[4] = (other[4] + 1) % 61;
  // Tokens 0 apart by little: the embedding of the other is nearly this one's.
  const View<float> table = linear.parameters().tensor(testing::gpt2_parameter("wte.weight"));
  for (std::int64_t c = 0; c < 32; ++c) {
    table(other[4], c) = table(tokens[4], c) + 1e-3F * static_cast<float>(std::sin(c));
  }
  const std::vector<Point> points{
      {PointKind::embedding}, {PointKind::residual_pre, 0}, {PointKind::mixed_values, 1}};
  const AttributionPatching found = estimate_patching(linear, tokens, other, metric, points);
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
  EXPECT_THROW(differentiate_logit(gpt, tokens, {{61}}, {}), Error);
  EXPECT_THROW(differentiate_logit(gpt, tokens, {{1}, 9}, {}), Error);
  EXPECT_THROW(differentiate_logit(gpt, {}, {{1}}, {}), Error);
  EXPECT_THROW(integrate_gradients(gpt, tokens, metric, 0), Error);
  EXPECT_THROW(estimate_patching(gpt, tokens, std::vector<std::int32_t>{1, 2}, metric,
                                 {{PointKind::embedding}}),
               Error);
  EXPECT_THROW(estimate_patching(gpt, tokens, tokens, metric, {{PointKind::scores, 0}}), Error);
}

}  // namespace
}  // namespace heed
