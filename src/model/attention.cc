#include "model/attention.h"

#include "kernels/kernels.h"
#include "model/block.h"
#include "model/head_points.h"

namespace heed {
namespace {

template <class T>
View<T> concatenated_heads(const LayerPass& at, View<T> mixed_values) {
  return mixed_values.reshape(
      {at.pass.view_batch(), at.pass.view_positions(), at.stack.heads(), at.stack.head_size()});
}

}  // namespace

void self_attention_forward(const LayerPass& at, const BlockActivations& block) {
  const AttentionActivations& saved = block.attention;
  const Pass& pass = at.pass;

  // 1. each token asks (query), offers (key) and carries (value), in one product:
  //    (N, C) -> (N, A + 2K)
  project(pass, attention_stream(at.stack, block), at.parameters.query_key_value,
          saved.query_key_value);
  edit_head_inputs(at, block.residual_pre, saved.query_key_value);
  const auto projected = split_heads(at.attention(), pass.view_batch(), saved.query_key_value);
  pass.visit(PointKind::query, at.layer, projected.query);
  pass.visit(PointKind::key, at.layer, projected.key);
  pass.visit(PointKind::value, at.layer, projected.value);

  // 2. queries and keys turn by their positions, so that a product of two knows their distance
  position(at, saved);
  visit_positioned(at, saved);

  // 3. each head weighs the values that its queries see: softmax(query·keyᵀ·scale)·value,
  //    (B, T, H, D)
  const Heads<const float> heads = attention_heads(at.attention(), pass.view_batch(), saved);
  const auto mixed = concatenated_heads(at, saved.mixed_values);
  store(at, heads);
  attend(at, AttentionKind::self, attention_input(at, AttentionKind::self, heads), mixed,
         saved.log_sum_exp);
  pass.visit(PointKind::mixed_values, at.layer, mixed);

  // 4. what the heads found, side by side, is written in the language of the stream:
  //    (N, A) -> (N, C)
  project(pass, saved.mixed_values, at.parameters.projection, block.attention_result);
  edit_head_results(at, saved.mixed_values, block.attention_result);
  observe_head_results(at, saved.mixed_values);
}

kernels::AttentionInput<float> saved_attention_input(const LayerPass& at,
                                                     const AttentionActivations& saved) {
  return attention_input(at, AttentionKind::self,
                         attention_heads(at.attention(), at.pass.view_batch(), saved));
}

void self_attention_backward(const LayerPass& at, const BlockGradients& gradients,
                             const AttentionActivations& saved, const ActivationGradients& buffers,
                             const SelfAttentionBackward& operands) {
  const Pass& pass = at.pass;

  // 4. out = mixed_values · projectionᵀ + bias
  observe_head_result_gradients(at, operands.d_out);
  project_backward(at.parameters.projection, gradients.projection,
                   {.x = saved.mixed_values, .d_out = operands.d_out, .d_x = buffers.mixed_values});

  // 3. mixed_values = softmax(query·keyᵀ·scale)·value, the pattern recomputed from log_sum_exp
  const auto d_heads = split_heads(at.attention(), pass.view_batch(), buffers.query_key_value);
  const auto input = saved_attention_input(at, saved);
  const View<float> d_mixed = concatenated_heads(at, buffers.mixed_values);
  pass.visit_gradient(PointKind::mixed_values, at.layer, d_mixed);
  Tensor<float> unedited;
  const View<const float> mixed = concatenated_heads(
      at, unedited_mixed_values(at, AttentionKind::self, input, saved.mixed_values, unedited));
  const kernels::AttentionGradients<float> d_attended{.query = d_heads.query,
                                                      .key = d_heads.key,
                                                      .value = d_heads.value,
                                                      .position_bias = gradients.position_bias};
  attend_backward(at, AttentionKind::self, input, mixed, saved.log_sum_exp, d_mixed, d_attended);

  // 2. queries and keys of their position
  if (at.attention().changes_query_and_key()) {
    pass.visit_gradient(PointKind::rotated_query, at.layer, d_heads.query);
    pass.visit_gradient(PointKind::rotated_key, at.layer, d_heads.key);
    position_backward(at, saved, gradients, buffers.query_key_value);
  }
  pass.visit_gradient(PointKind::query, at.layer, d_heads.query);
  pass.visit_gradient(PointKind::key, at.layer, d_heads.key);
  pass.visit_gradient(PointKind::value, at.layer, d_heads.value);

  // 1. query_key_value = x · weightᵀ + bias, unless heads have an x of their own
  if (backward_is_by_head(at)) return;
  project_backward(at.parameters.query_key_value, gradients.query_key_value,
                   {.x = operands.x, .d_out = buffers.query_key_value, .d_x = operands.d_x});
}

}  // namespace heed
