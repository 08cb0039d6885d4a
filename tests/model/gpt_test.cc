#include "model/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "model/comparison.h"

namespace heed {
namespace {

StackSpecification tiny_config() { return make_gpt_config(2, 2, 16, 8, 11); }

TEST(Transformer, UntrainedLossIsNearUniform) {
  const StackSpecification config = tiny_config();
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(1);
  Tensor<std::int32_t> tokens(Shape{3, 8});
  Tensor<std::int32_t> targets(Shape{3, 8});
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i % 11);
    targets[i] = static_cast<std::int32_t>((i + 5) % 11);
  }
  EvaluationBuffers buffers(config, 3, 8);
  const LossSum loss = transformer.loss(tokens, targets, buffers);
  EXPECT_EQ(loss.count, 24);
  EXPECT_NEAR(loss.mean(), std::log(11.0), 0.1);
}

// The directional derivative along the gradient, by central differences: ties every backward to its
// forward at once.
void expect_gradient_predicts_loss(StackSpecification config, double distance = 1e-2) {
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0.2F;
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(2);
  for (const Parameter& parameter : transformer.parameters().list()) {
    if (parameter.shape.rank() < 2)
      continue;  // away from the linear regime, with norms as they are
    for (float& value : transformer.parameters().tensor(parameter.id).span()) value *= 5;
  }
  Tensor<std::int32_t> tokens(Shape{3, 8});
  Tensor<std::int32_t> targets(Shape{3, 8});
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * 7 % 11);
    targets[i] = static_cast<std::int32_t>(i * 5 % 11);
  }
  TrainingBuffers buffers(config, 3, 8);
  Gradients gradients({.stacks = {config}});
  const Transformer::Step step{.scale = 1.0F, .dropout = {.active = true, .seed = 3, .pass = 4}};
  transformer.loss_and_gradients(tokens, targets, step, buffers, gradients);

  double squared = 0;
  for (const float g : gradients.all()) squared += static_cast<double>(g) * g;
  const auto loss_at = [&](double move) {
    for (std::size_t i = 0; i < gradients.all().size(); ++i) {
      transformer.parameters().all()[i] +=
          static_cast<float>(move * gradients.all()[i] / std::sqrt(squared));
    }
    Gradients ignored({.stacks = {config}});
    return transformer.loss_and_gradients(tokens, targets, step, buffers, ignored).sum;
  };
  // Moves from where the last one ended.
  const double above = loss_at(distance), far_above = loss_at(distance);
  const double below = loss_at(-3 * distance), far_below = loss_at(-distance);
  const double slope = (8 * (above - below) - (far_above - far_below)) / (12 * distance);
  // Four losses err by the fifth derivative · distance⁴; float losses by about 1e-6 / distance.
  EXPECT_NEAR(slope / std::sqrt(squared), 1.0, 5e-3);
}

TEST(Transformer, GradientPredictsTheChangeOfTheLoss) {
  expect_gradient_predicts_loss(tiny_config());
}

// GPT-3's alternation of dense and banded layers.
TEST(Transformer, GradientOfBandedLayersPredictsTheChangeOfTheLoss) {
  StackSpecification config = tiny_config();
  config.block.attention.mask = {.kind = MaskKind::banded, .windows = {0, 3}};
  expect_gradient_predicts_loss(config);
}

// OLMo 2's norms, and Gemma's.
TEST(Transformer, GradientOfNormsOfOutputsPredictsTheChangeOfTheLoss) {
  for (const NormPlacement placement : {NormPlacement::output, NormPlacement::around}) {
    for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
      SCOPED_TRACE(norm_placement_name(placement));
      StackSpecification config = tiny_config();
      config.block.norm = {.kind = kind, .placement = placement, .bias = kind == NormKind::layer};
      config.block.attention.query_key_norm = true;
      config.block.attention.head_norms = HeadNormExtent::all_heads;
      expect_gradient_predicts_loss(config, 1e-3);
    }
  }
}

TEST(Transformer, GradientOfSoftCapsPredictsTheChangeOfTheLoss) {
  StackSpecification config = tiny_config();
  config.block.attention.soft_cap = 2;
  config.logit_cap = 1.5F;
  config.embedding_scale = 4;
  expect_gradient_predicts_loss(config, 1e-3);
}

TEST(Transformer, GradientOfLocalRotaryBasesPredictsTheChangeOfTheLoss) {
  StackSpecification config = tiny_config();
  config.block.attention.positions = PositionKind::rotary;
  config.block.attention.rotary.base = 100;
  config.block.attention.rotary.local_base = 10;
  config.block.attention.mask = {.kind = MaskKind::banded, .windows = {0, 3}};
  expect_gradient_predicts_loss(config, 1e-3);
}

// One norm for both branches.
TEST(Transformer, GradientOfASharedNormPredictsTheChangeOfTheLoss) {
  StackSpecification config = tiny_config();
  config.block.residual = ResidualKind::parallel_shared;
  config.block.attention.key_value_heads = 1;
  expect_gradient_predicts_loss(config);
}

// Recomputing runs the same functions on the same numbers: the same gradients, to the bit.
TEST(Transformer, RecomputedBlocksGiveTheSameGradients) {
  StackSpecification config = make_gpt_config(3, 2, 16, 8, 11);
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0.2F;
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(2);
  Tensor<std::int32_t> tokens(Shape{3, 8});
  Tensor<std::int32_t> targets(Shape{3, 8});
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * 7 % 11);
    targets[i] = static_cast<std::int32_t>(i * 5 % 11);
  }
  const Transformer::Step step{.scale = 1.0F, .dropout = {.active = true, .seed = 3, .pass = 4}};
  TrainingBuffers kept(config, 3, 8), recomputed(config, 3, 8, Keep::residuals);
  Gradients gradients({.stacks = {config}}), again({.stacks = {config}});
  const LossSum loss = transformer.loss_and_gradients(tokens, targets, step, kept, gradients);
  EXPECT_EQ(transformer.loss_and_gradients(tokens, targets, step, recomputed, again).sum, loss.sum);
  for (std::size_t i = 0; i < again.all().size(); ++i) {
    ASSERT_EQ(again.all()[i], gradients.all()[i]) << i;
  }
  EXPECT_LT(recomputed.activations.bytes(), kept.activations.bytes());
}

TEST(Transformer, RefusesWhatDoesNotFitIt) {
  const StackSpecification config = tiny_config();
  const Transformer transformer({.stacks = {config}});
  EvaluationBuffers buffers(config, 1, 4);
  Tensor<std::int32_t> tokens(Shape{1, 4});
  Tensor<std::int32_t> targets(Shape{1, 4});
  const auto refuse = [&](const char* part) {
    testing::expect_error(
        ErrorCode::invalid_argument, [&] { transformer.loss(tokens, targets, buffers); }, part);
  };
  tokens[2] = 11;
  refuse("11");
  tokens[2] = -1;
  refuse("-1");
  tokens[2] = 0;
  targets[3] = 11;
  refuse("11");
  targets = Tensor<std::int32_t>(Shape{1, 3});
  refuse("targets has shape (1, 3), expected (1, 4)");
}

// A batch of sequences decoded step by step, as one pass has it.
TEST(Transformer, ContinuesABatchFromItsCache) {
  const StackSpecification config = tiny_config();
  Transformer transformer({.stacks = {config}});
  transformer.parameters().initialize(5);
  for (float& value : transformer.parameters().all()) value *= 5;
  Tensor<std::int32_t> tokens(Shape{3, 8});
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i * 7 % 11);
  }
  const StackActivations whole(config, 3, 8, Keep::one_block);
  transformer.forward(tokens, {.sequences = {3, 8}}, whole);
  const View<float> expected = whole.final_norm().reshape({3, 8, 16});

  KeyValueCache cache(config, 3, 8);
  const StackActivations step(config, 3, 1, Keep::one_block);
  Tensor<std::int32_t> column(Shape{3, 1});
  for (std::int64_t t = 0; t < 8; ++t) {
    for (std::int64_t b = 0; b < 3; ++b) column[b] = tokens.view()(b, t);
    transformer.forward(column, {.sequences = Sequences::next_of(cache)}, step);
    for (std::int64_t b = 0; b < 3; ++b) {
      EXPECT_LE(testing::relative_error(step.final_norm()[b].span(), expected[b][t].span()), 1e-5);
    }
  }
  testing::expect_error(
      ErrorCode::invalid_argument,
      [&] { transformer.forward(column, {.sequences = Sequences::next_of(cache)}, step); },
      "9 positions are more than the model's context of 8");
}

}  // namespace
}  // namespace heed
