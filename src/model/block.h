// A transformer block: x + attention(norm(x)), then x + feed_forward(norm(x)).
#pragma once

#include "model/activations.h"
#include "model/parameters.h"
#include "model/pass.h"

namespace heed {

// Reads saved.residual_pre (N, C), writes saved.residual_post (N, C) and all between.
void block_forward(const GptConfig& config, const BlockParameters& parameters, std::int64_t layer,
                   const Pass& pass, const BlockActivations& saved);

// buffers.residual (N, C) comes in as the gradient of residual_post and leaves as that of
// residual_pre; parameter gradients accumulate.
void block_backward(const GptConfig& config, const BlockParameters& parameters,
                    const BlockGradients& gradients, std::int64_t layer, const Pass& pass,
                    const BlockActivations& saved, const GptActivationGradients& buffers);

}  // namespace heed
