#include "model/block.h"

#include "kernels/kernels.h"
#include "model/attention.h"
#include "model/feed_forward.h"
#include "model/head_points.h"
#include "model/norm.h"

namespace heed {

void block_forward(const GptConfig& config, const BlockParameters& parameters, std::int64_t layer,
                   const Pass& pass, const BlockActivations& saved) {
  const auto dropped = [&](DropoutPoint point, View<float> x) {
    const auto dropout = pass.dropout.at(point, layer, config.residual_dropout);
    if (dropout.rate > 0) kernels::dropout(x, dropout, x);
  };

  // 1. residual_mid = residual_pre + attention(norm_1(residual_pre))
  pass.visit_rows(PointKind::residual_pre, layer, saved.residual_pre);
  observe_head_inputs(config, layer, pass, saved.residual_pre);
  norm_forward(pass, layer, norm_1_points, saved.residual_pre,
               {parameters.norm_1, saved.norm_1_saved, saved.norm_1});
  self_attention_forward(config, parameters, layer, pass, saved);
  dropped(DropoutPoint::attention_out, saved.branch_out);
  pass.visit_rows(PointKind::attention_out, layer, saved.branch_out);
  kernels::add(saved.residual_pre, saved.branch_out, saved.residual_mid);

  // 2. residual_post = residual_mid + feed_forward(norm_2(residual_mid))
  pass.visit_rows(PointKind::residual_mid, layer, saved.residual_mid);
  norm_forward(pass, layer, norm_2_points, saved.residual_mid,
               {parameters.norm_2, saved.norm_2_saved, saved.norm_2});
  feed_forward_forward(config, parameters, layer, pass, saved.norm_2, saved.feed_forward,
                       saved.branch_out);
  dropped(DropoutPoint::feed_forward_out, saved.branch_out);
  pass.visit_rows(PointKind::feed_forward_out, layer, saved.branch_out);
  kernels::add(saved.residual_mid, saved.branch_out, saved.residual_post);
  pass.visit_rows(PointKind::residual_post, layer, saved.residual_post);
}

void block_backward(const GptConfig& config, const BlockParameters& parameters,
                    const BlockGradients& gradients, std::int64_t layer, const Pass& pass,
                    const BlockActivations& saved, const GptActivationGradients& buffers) {
  // The gradient of a branch's output: the stream's, times the dropout factor.
  const auto branch_gradient = [&](DropoutPoint point) -> View<const float> {
    const auto dropout = pass.dropout.at(point, layer, config.residual_dropout);
    if (dropout.rate <= 0) return buffers.residual;
    kernels::dropout(buffers.residual, dropout, buffers.branch);
    return buffers.branch;
  };

  // 2. residual_post = residual_mid + feed_forward(norm_2(residual_mid))
  pass.observe_gradient_rows(PointKind::residual_post, layer, buffers.residual);
  pass.observe_gradient_rows(PointKind::feed_forward_out, layer, buffers.residual);
  feed_forward_backward(config, parameters, gradients, layer, pass, saved.feed_forward,
                        {.x = saved.norm_2,
                         .d_out = branch_gradient(DropoutPoint::feed_forward_out),
                         .d_neurons = buffers.neurons,
                         .d_x = buffers.norm});
  norm_backward(pass, layer, norm_2_points,
                {saved.residual_mid, saved.norm_2_saved, parameters.norm_2, buffers.norm},
                {buffers.residual, gradients.norm_2});

  // 1. residual_mid = residual_pre + attention(norm_1(residual_pre))
  pass.observe_gradient_rows(PointKind::residual_mid, layer, buffers.residual);
  pass.observe_gradient_rows(PointKind::attention_out, layer, buffers.residual);
  self_attention_backward(config, parameters, gradients, layer, pass, saved.attention, buffers,
                          {.x = saved.norm_1,
                           .d_out = branch_gradient(DropoutPoint::attention_out),
                           .d_x = buffers.norm});
  observe_head_input_gradients(config, parameters, layer, pass, saved, buffers.query_key_value);
  norm_backward(pass, layer, norm_1_points,
                {saved.residual_pre, saved.norm_1_saved, parameters.norm_1, buffers.norm},
                {buffers.residual, gradients.norm_1});
  pass.observe_gradient_rows(PointKind::residual_pre, layer, buffers.residual);
}

}  // namespace heed
