// Gradients and explanations of quantised models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "generate/random_transformer.h"
#include "microscope/explain/attribution.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/explain/residual_parts.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/activation_trace.h"
#include "support/gpt2_names.h"

namespace heed {
namespace {

using kernels::WeightFormat;

StackSpecification untied_config() {
  StackSpecification config = testing::small_config();
  config.tied_unembedding = false;  // so that the embedding is not quantised with the unembedding
  config.context = 96;
  return config;
}

// Weights and gains twice those at the start of training, so that rounding errors are not
// amplified.
Transformer calm_transformer() {
  Transformer transformer({.stacks = {untied_config()}});
  transformer.parameters().initialize(7);
  for (float& value : transformer.parameters().all()) value *= 2.0F;
  return transformer;
}

std::vector<std::string> matrix_names(const StackSpecification& config) {
  std::vector<std::string> names{"lm_head.weight"};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (const char* part : {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"}) {
      names.push_back(fmt::format("h.{}.{}.weight", layer, part));
    }
  }
  return names;
}

class QuantisedWeights : public ::testing::TestWithParam<WeightFormat> {
 protected:
  QuantisedWeights() { transformer.parameters().prepare(GetParam()); }

  // The same numbers as f32, multiplied as f32.
  Transformer restored() const {
    Transformer other = calm_transformer();
    for (const std::string& name : matrix_names(untied_config())) {
      const View<float> weight = other.parameters().tensor(testing::gpt2_parameter(name));
      const Tensor<float> quantised = kernels::PreparedWeight(weight, GetParam()).restored();
      std::ranges::copy(quantised.span(), weight.data());
    }
    return other;
  }

  Transformer transformer = calm_transformer();
  const LogitMetric metric{{7, 23}, -1};
};

INSTANTIATE_TEST_SUITE_P(Formats, QuantisedWeights,
                         ::testing::Values(WeightFormat::bf16, WeightFormat::int8,
                                           WeightFormat::int4),
                         [](const auto& tested) {
                           return std::string(kernels::weight_format_name(tested.param));
                         });

// Backward uses the dequantised weights of forward: d_z = d_attn_out · W_O in f32. Sums of 32
// products have an error of about √32 · 2⁻²⁴.
TEST_P(QuantisedWeights, GradientsUseTheDequantisedMatrices) {
  const auto tokens = testing::random_tokens(9, 61, 3);
  const Point out{PointKind::attention_out, 1}, mixed{PointKind::mixed_values, 1};
  const LogitGradients found = differentiate_logit(transformer, tokens, metric, {out, mixed});
  const Tensor<float> weight =
      transformer.parameters().block(1).projection.prepared->restored();  // (C, A)
  const View<const float> d_out = found.gradients[0].view()[0];           // (T, C)
  std::vector<float> expected;
  for (std::int64_t t = 0; t < 9; ++t) {
    for (std::int64_t a = 0; a < weight.shape()[1]; ++a) {
      double sum = 0;
      for (std::int64_t c = 0; c < weight.shape()[0]; ++c) {
        sum += double{d_out(t, c)} * weight.view()(c, a);
      }
      expected.push_back(static_cast<float>(sum));
    }
  }
  EXPECT_LT(testing::relative_error(found.gradients[1].span(), expected), 1e-6);
}

// Against f32 with the same weights. The remaining error is the rounding of activations: 2⁻⁹ in
// bf16, up to 2⁻⁸ of the largest of 32 in int8, in each of the four products of three layers, and
// in attention from 64 tokens on. About twenty independent errors give √20 · 2⁻⁸ ≈ 2 %.
TEST_P(QuantisedWeights, GradientsAreThoseOfTheQuantisedModel) {
  const Transformer reference = restored();
  const std::vector<Point> points{{PointKind::embedding},
                                  {PointKind::residual_mid, 1},
                                  {PointKind::query, 0},
                                  {PointKind::neurons_pre, 2}};
  for (const std::int64_t positions : {9, 80}) {
    const auto tokens = testing::random_tokens(positions, 61, 3);
    const LogitGradients found = differentiate_logit(transformer, tokens, metric, points);
    const LogitGradients expected = differentiate_logit(reference, tokens, metric, points);
    EXPECT_NEAR(found.metric, expected.metric, 0.02 * std::max(1.0, std::abs(expected.metric)));
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double error =
          testing::relative_error(found.gradients[i].span(), expected.gradients[i].span());
      EXPECT_LT(error, 0.02) << point_name(points[i]) << ", " << positions << " tokens";
      RecordProperty(fmt::format("{}_{}", point_name(points[i]), positions),
                     fmt::format("{}", error));
    }
  }
}

TEST_P(QuantisedWeights, TracedGradientsOfTheLossAreToo) {
  const Transformer reference = restored();
  const auto tokens = testing::random_tokens(40, 61, 3);
  const TraceRequest request{.points = {"resid_pre0_grad", "z2_grad"}};
  const Trace found = trace_prompt(transformer, tokens, request);
  const Trace expected = trace_prompt(reference, tokens, request);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_LT(testing::relative_error(found.arrays[i].values, expected.arrays[i].values), 0.02)
        << found.arrays[i].name;
  }
}

// The sum is exact: rounding of products is a term of its own.
TEST_P(QuantisedWeights, AttributionsSumToTheLogitThatTheModelSays) {
  for (const std::int64_t positions : {9, 80}) {
    const auto tokens = testing::random_tokens(positions, 61, 3);
    const Tensor<float> logits = testing::full_logits(transformer, tokens);
    const double expected =
        double{logits.view()(positions - 1, 7)} - logits.view()(positions - 1, 23);
    for (const AttributionUnit unit : {AttributionUnit::component, AttributionUnit::head,
                                       AttributionUnit::neuron, AttributionUnit::source}) {
      const Attribution found = attribute_logit(transformer, tokens, {7, 23}, unit);
      EXPECT_EQ(found.terms.back().name(), "rounding");
      EXPECT_LT(std::abs(found.terms.back().value), 0.02);
      // Rows of a product may be summed in another order than the last one alone.
      EXPECT_NEAR(found.sum(), found.logit, 1e-5);
      EXPECT_NEAR(found.logit, expected, 0.01);
    }
    for (const ResidualUnit unit : {ResidualUnit::component, ResidualUnit::head}) {
      const ResidualParts parts = decompose_residual(transformer, tokens, unit);
      double share = 0;
      for (const ResidualPart& part : parts.parts) share += part.share;
      EXPECT_NEAR(share, 1, 1e-6);
      EXPECT_EQ(parts.parts.back().name, "rounding");
    }
  }
}

TEST_P(QuantisedWeights, IntegratedGradientsAreCompleteUpToRounding) {
  const auto tokens = testing::random_tokens(9, 61, 3);
  const IntegratedGradients found = integrate_gradients(transformer, tokens, metric);
  const double change = std::abs(found.metric - found.baseline);
  EXPECT_LT(std::abs(found.completeness_error), 0.03 * std::max(change, 1.0));
}

// The estimate starts from the same metrics as the sweep.
TEST_P(QuantisedWeights, EstimatesStartWhereSweepsDo) {
  PatchRequest request{.clean = {.target = testing::random_tokens(9, 61, 3)},
                       .corrupted = {.target = testing::random_tokens(9, 61, 4)},
                       .metric = {.answer = 7, .wrong = 23}};
  const PatchResult sweep = patch_sweep(transformer, request);
  request.method = PatchMethod::attribution;
  const PatchResult estimate = patch_sweep(transformer, request);
  EXPECT_NEAR(estimate.clean, sweep.clean, 0.01 * std::max(1.0, std::abs(sweep.clean)));
  EXPECT_NEAR(estimate.corrupted, sweep.corrupted, 0.01 * std::max(1.0, std::abs(sweep.corrupted)));
}

}  // namespace
}  // namespace heed
