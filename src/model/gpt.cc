#include "model/gpt.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/kernels.h"
#include "model/block.h"
#include "model/edited_points.h"
#include "model/input_checks.h"
#include "model/norm.h"

namespace heed {
namespace {

View<const std::int32_t> flat(View<const std::int32_t> targets) {
  return targets.reshape({targets.size()});
}

}  // namespace

TrainingBuffers::TrainingBuffers(const GptConfig& config, std::int64_t batch,
                                 std::int64_t positions, Keep keep)
    : activations(config, batch, positions, keep),
      gradients(config, batch * positions),
      loss(config.vocabulary_size),
      losses(Shape{batch * positions}) {}

EvaluationBuffers::EvaluationBuffers(const GptConfig& config, std::int64_t batch,
                                     std::int64_t positions, std::optional<CacheType> cache_type)
    : activations(config, batch, positions, Keep::one_block),
      loss(config.vocabulary_size),
      losses(Shape{batch * positions}) {
  if (cache_type) cache.emplace(config, batch, positions, *cache_type);
}

Gpt::Gpt(const GptConfig& config) : config_(config), parameters_(config) {}

void Gpt::set_dropout(float embedding, float attention, float residual) {
  config_.embedding_dropout = embedding;
  config_.attention_dropout = attention;
  config_.residual_dropout = residual;
  config_.validate();
}

kernels::EmbeddingInput<float> Gpt::embedding_input(View<const std::int32_t> tokens,
                                                    const Pass& pass) const {
  return {.tokens = tokens,
          .token_table = parameters_.token_embedding(),
          .position_table = parameters_.position_embedding(),
          .first_position = pass.first_position,
          .first_positions = pass.first_positions};
}

void Gpt::forward(View<const std::int32_t> tokens, const Pass& pass,
                  const GptActivations& activations) const {
  require_shape(tokens, {pass.batch, pass.positions}, "tokens");
  require_shape(activations.final_norm(), {pass.rows(), config_.channels}, "activations");
  std::int64_t last = pass.first_position;
  for (std::int64_t first : pass.first_positions) last = std::max(last, first);
  require_positions_fit(config_, last + pass.positions);
  check(pass.cache == nullptr || pass.cache->length() == pass.first_position,
        "a pass starts at the length of its cache");
  check(pass.editor == nullptr || !pass.dropout.active, "edited passes run without dropout");
  check(pass.caches.size() == pass.first_positions.size(), "every cache has a first position");
  if (pass.edits({PointKind::logits})) {
    fail(ErrorCode::unsupported,
         "{} cannot be edited: edit unembed.hook_in, which the logits are computed from",
         point_name({PointKind::logits}));
  }

  // 1. token + position embedding: (B, T) -> (N, C)
  const auto embedding = embedding_input(tokens, pass);
  const auto embedded =
      activations.embedding().reshape({pass.batch, pass.positions, config_.channels});
  kernels::embedding_forward(embedding, embedded);
  edit_embedding(pass, embedding, embedded);
  observe_embedding(pass, embedding);
  const auto dropout = pass.dropout.at(DropoutPoint::embedding, -1, config_.embedding_dropout);
  if (dropout.rate > 0) kernels::dropout(activations.embedding(), dropout, activations.embedding());

  // 2. the blocks
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    block_forward(config_, parameters_.block(layer), layer, pass, activations.block(layer));
  }
  if (pass.cache != nullptr) pass.cache->advance(pass.positions);
  for (KeyValueCache* cache : pass.caches) cache->advance(pass.positions);

  // 3. the final norm
  norm_forward(
      pass, -1, final_norm_points, activations.last_residual(),
      {parameters_.final_norm(), activations.final_norm_saved(), activations.final_norm()});
  pass.visit_rows(PointKind::unembedding_in, -1, activations.final_norm());
  observe_logits(pass, parameters_.unembedding(), activations.final_norm());
}

void Gpt::backward(View<const std::int32_t> tokens, const Pass& pass,
                   const GptActivations& activations, const GptActivationGradients& buffers,
                   GptGradients* gradients) const {
  require(activations.keep() != Keep::one_block, ErrorCode::invalid_argument,
          "backward needs activations that keep every block or the residual stream");
  require_shape(tokens, {pass.batch, pass.positions}, "tokens");
  require_shape(activations.final_norm(), {pass.rows(), config_.channels}, "activations");
  require_shape(buffers.norm, {pass.rows(), config_.channels}, "activation gradients");
  const auto of_block = [&](std::int64_t layer) {
    return gradients != nullptr ? gradients->block(layer) : BlockGradients{};
  };

  // 3. the final norm, whose input is the end of the residual stream
  const std::span<float> residual = buffers.residual.span();
  std::fill(residual.begin(), residual.end(), 0.0F);
  pass.observe_gradient_rows(PointKind::unembedding_in, -1, buffers.norm);
  norm_backward(
      pass, -1, final_norm_points,
      {activations.last_residual(), activations.final_norm_saved(), parameters_.final_norm(),
       buffers.norm},
      {buffers.residual, gradients != nullptr ? gradients->final_norm() : NormWeightGradients{}});

  // 2. the blocks
  Pass unobserved = pass;
  unobserved.probe = nullptr;
  for (std::int64_t layer = config_.layers - 1; layer >= 0; --layer) {
    if (activations.keep() == Keep::residuals && layer + 1 < config_.layers) {
      block_forward(config_, parameters_.block(layer), layer, unobserved, activations.block(layer));
    }
    block_backward(config_, parameters_.block(layer), of_block(layer), layer, pass,
                   activations.block(layer), buffers);
  }

  // 1. the embeddings
  const auto dropout = pass.dropout.at(DropoutPoint::embedding, -1, config_.embedding_dropout);
  if (dropout.rate > 0) kernels::dropout(buffers.residual, dropout, buffers.residual);
  pass.observe_gradient_rows(PointKind::embedding, -1, buffers.residual);
  pass.observe_gradient_rows(PointKind::position, -1, buffers.residual);
  if (gradients == nullptr) return;
  kernels::embedding_backward(
      embedding_input(tokens, pass),
      buffers.residual.reshape({pass.batch, pass.positions, config_.channels}),
      {.token_table = gradients->tensor("wte.weight"),
       .position_table = gradients->tensor("wpe.weight")});
}

void Gpt::project(View<const float> x, View<float> logits) const {
  kernels::linear_forward(x, parameters_.unembedding(), logits);
}

LossSum Gpt::loss(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                  EvaluationBuffers& buffers, Probe* probe) const {
  require_shape(targets, tokens.shape(), "targets");
  if (buffers.cache) buffers.cache->truncate(0);
  forward(tokens,
          {.batch = tokens.extent(0),
           .positions = tokens.extent(1),
           .cache = buffers.cache ? &*buffers.cache : nullptr,
           .probe = probe},
          buffers.activations);
  return buffers.loss.forward(buffers.activations.final_norm(), parameters_.unembedding(),
                              flat(targets), buffers.losses);
}

LossSum Gpt::loss_and_gradients(View<const std::int32_t> tokens, View<const std::int32_t> targets,
                                const Step& step, TrainingBuffers& buffers,
                                GptGradients& gradients) const {
  require_shape(targets, tokens.shape(), "targets");
  const Pass pass{.batch = tokens.extent(0),
                  .positions = tokens.extent(1),
                  .dropout = step.dropout,
                  .probe = step.probe};
  forward(tokens, pass, buffers.activations);
  observe_logit_gradients(pass, parameters_.unembedding(), buffers.activations.final_norm(),
                          flat(targets), step.scale);
  const LossSum loss = buffers.loss.forward_backward(
      buffers.activations.final_norm(), parameters_.unembedding(), flat(targets), buffers.losses,
      {.scale = step.scale,
       .d_x = buffers.gradients.norm,
       .d_unembedding = gradients.unembedding(),
       .d_bias = gradients.unembedding_bias()});
  backward(tokens, pass, buffers.activations, buffers.gradients, &gradients);
  return loss;
}

}  // namespace heed
