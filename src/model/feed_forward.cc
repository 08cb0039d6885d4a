#include "model/feed_forward.h"

#include "kernels/kernels.h"

namespace heed {

void feed_forward_forward(const GptConfig& config, const BlockParameters& parameters,
                          std::int64_t layer, const Pass& pass, View<const float> x,
                          const FeedForwardActivations& saved, View<float> out) {
  // 1. up projection: (N, C) -> (N, F)
  kernels::linear_forward(x, parameters.up, saved.pre);
  pass.visit_rows(PointKind::neurons_pre, layer, saved.pre);
  // 2. activation
  kernels::activation_forward(saved.pre, config.activation, saved.post);
  pass.visit_rows(PointKind::neurons_post, layer, saved.post);
  // 3. down projection: (N, F) -> (N, C)
  kernels::linear_forward(saved.post, parameters.down, out);
}

void feed_forward_backward(const GptConfig& config, const BlockParameters& parameters,
                           const BlockGradients& gradients, std::int64_t layer, const Pass& pass,
                           const FeedForwardActivations& saved,
                           const FeedForwardBackward& operands) {
  // 3. out = post · downᵀ + bias
  kernels::linear_backward_input(kernels::MultipliedWeight(parameters.down).view(), operands.d_out,
                                 operands.d_neurons, parameters.down.precision);
  kernels::linear_backward_parameters(saved.post, operands.d_out, gradients.down,
                                      parameters.down.precision);
  pass.observe_gradient_rows(PointKind::neurons_post, layer, operands.d_neurons);
  // 2. post = activation(pre), in place
  kernels::activation_backward(saved.pre, config.activation, operands.d_neurons,
                               operands.d_neurons);
  pass.observe_gradient_rows(PointKind::neurons_pre, layer, operands.d_neurons);
  // 1. pre = x · upᵀ + bias
  kernels::linear_backward_input(kernels::MultipliedWeight(parameters.up).view(),
                                 operands.d_neurons, operands.d_x, parameters.up.precision);
  kernels::linear_backward_parameters(operands.x, operands.d_neurons, gradients.up,
                                      parameters.up.precision);
}

}  // namespace heed
