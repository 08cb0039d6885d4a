// A transformer block: x + attention(norm(x)), then x + feed_forward(norm(x)).
#pragma once

#include "model/activations.h"
#include "model/parameters.h"
#include "model/pass.h"

namespace heed {

// From saved.residual_pre (N, C) to saved.residual_post (N, C); fills everything between.
void block_forward(const GptConfig& config, const BlockParameters& parameters, std::int64_t layer,
                   const Pass& pass, const BlockActivations& saved);

// buffers.residual (N, C) holds the gradient of residual_post before the call and that of
// residual_pre after it. Parameter gradients accumulate.
void block_backward(const GptConfig& config, const BlockParameters& parameters,
                    const BlockGradients& gradients, std::int64_t layer, const Pass& pass,
                    const BlockActivations& saved, const GptActivationGradients& buffers);

}  // namespace heed
