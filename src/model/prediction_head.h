// The head of a masked language model: norm(activation(dense(x))), before the unembedding (Devlin
// et al. 2019).
#pragma once

#include "model/stack.h"

namespace heed {

// Fills activations.prediction() from activations.final_norm().
void prediction_forward(const Stack& stack, const Pass& pass, const StackActivations& activations);

// buffers.norm holds the gradient of prediction().out before the call, and that of final_norm()
// after it; buffers.residual and buffers.branch are overwritten.
void prediction_backward(const Stack& stack, const Pass& pass, const StackActivations& activations,
                         const ActivationGradients& buffers, const StackGradients* gradients);

}  // namespace heed
