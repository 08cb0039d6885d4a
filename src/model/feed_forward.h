// The feed-forward layer of a block (MLP), applied to each position separately. Rows of `up` are
// the input weights of the neurons, columns of `down` their output weights (Geva et al. 2021 read
// them as the keys and values of a memory).
#pragma once

#include "model/activations.h"
#include "model/parameters.h"
#include "model/pass.h"

namespace heed {

// out (N, C) from x (N, C), the normalised stream.
void feed_forward_forward(const GptConfig& config, const BlockParameters& parameters,
                          std::int64_t layer, const Pass& pass, View<const float> x,
                          const FeedForwardActivations& saved, View<float> out);

// d_x (N, C), overwritten, from d_out (N, C); parameter gradients accumulate. d_neurons is scratch.
struct FeedForwardBackward {
  View<const float> x;      // (N, C), as in forward
  View<const float> d_out;  // (N, C)
  View<float> d_neurons;    // (N, F)
  View<float> d_x;          // (N, C)
};
void feed_forward_backward(const GptConfig& config, const BlockParameters& parameters,
                           const BlockGradients& gradients, std::int64_t layer, const Pass& pass,
                           const FeedForwardActivations& saved,
                           const FeedForwardBackward& operands);

}  // namespace heed
