#include "model/prediction_head.h"

#include "kernels/elements.h"
#include "kernels/kernels.h"

namespace heed {

void prediction_forward(const Stack& stack, const Pass& pass, const StackActivations& activations) {
  const PredictionActivations& saved = activations.prediction();
  project(pass, activations.final_norm(), stack.parameters.prediction, saved.pre);
  kernels::activation_forward(saved.pre, stack.specification.block.feed_forward.activation,
                              saved.post);
  normalise(stack.specification, saved.post, stack.parameters.prediction_norm, saved.norm_saved,
            saved.out);
}

void prediction_backward(const Stack& stack, const Pass& pass, const StackActivations& activations,
                         const ActivationGradients& buffers, const StackGradients* gradients) {
  const PredictionActivations& saved = activations.prediction();
  const View<float> d_post = buffers.residual;
  kernels::fill(d_post, 0.0F);  // a norm's backward accumulates
  normalise_backward(stack.specification, pass.frozen, stack.parameters.prediction_norm,
                     saved.norm_saved, {.x = saved.post, .d_out = buffers.norm, .d_x = d_post},
                     gradients != nullptr ? gradients->prediction_norm : NormWeightGradients{});
  kernels::activation_backward(saved.pre, stack.specification.block.feed_forward.activation, d_post,
                               d_post);
  project_backward(stack.parameters.prediction,
                   gradients != nullptr ? gradients->prediction : LinearWeightGradients{},
                   {.x = activations.final_norm(), .d_out = d_post, .d_x = buffers.norm});
}

}  // namespace heed
