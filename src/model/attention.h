// The attention layer of a block: project to queries, keys and values; position them; attend, head
// by head; concatenate and project back.
#pragma once

#include "model/stages.h"

namespace heed {

// saved.branch_out (N, C) from saved.norm_1 (N, C), the normalised stream; saved.attention is
// filled.
void self_attention_forward(const LayerPass& at, const BlockActivations& saved);

// The operands of attention in a pass without a cache, from saved activations.
kernels::AttentionInput<float> saved_attention_input(const LayerPass& at,
                                                     const AttentionActivations& saved);

// d_x (N, C), overwritten, from d_out (N, C); parameter gradients accumulate. Leaves the gradients
// of query_key_value and mixed_values in `buffers`.
struct SelfAttentionBackward {
  View<const float> x;      // (N, C), as in forward
  View<const float> d_out;  // (N, C)
  View<float> d_x;          // (N, C)
};
void self_attention_backward(const LayerPass& at, const BlockGradients& gradients,
                             const AttentionActivations& saved, const ActivationGradients& buffers,
                             const SelfAttentionBackward& operands);

}  // namespace heed
