// A transformer block: x + attention(norm(x)), then x + feed_forward(norm(x)); or, where the
// residual is parallel, x + attention(norm(x)) + feed_forward(norm(x)); or, where norms come after
// their branches, norm(x + attention(x)), then norm(x + feed_forward(x)). Norms may also be of what
// a branch gives: x + norm(attention(x)). A decoder that attends to an encoder does so between the
// two.
#pragma once

#include "model/stages.h"

namespace heed {

// From saved.residual_pre (N, C) to saved.output (N, C); fills everything between.
void block_forward(const LayerPass& at, const BlockActivations& saved);

// buffers.residual (N, C) holds the gradient of saved.output before the call and that of
// residual_pre after it. Parameter gradients accumulate, and so does d_memory (M, C), the gradient
// of what cross-attention attends to.
void block_backward(const LayerPass& at, const BlockGradients& gradients,
                    const BlockActivations& saved, const ActivationGradients& buffers,
                    View<float> d_memory = {});

// What attention reads: the norm of the stream, or the stream.
inline View<float> attention_stream(const StackSpecification& stack,
                                    const BlockActivations& saved) {
  return stack.has_input_norms() ? saved.norm_1 : saved.residual_pre;
}
// What cross-attention reads.
inline View<float> cross_stream(const StackSpecification& stack, const BlockActivations& saved) {
  return stack.is_post_norm() ? saved.norm_1 : saved.cross_norm;
}

// The stream before feed-forward and its norm.
inline View<float> feed_forward_stream(const StackSpecification& stack,
                                       const BlockActivations& saved) {
  const bool crosses = stack.block.cross_attention.has_value();
  if (stack.is_post_norm()) return crosses ? saved.cross_norm : saved.norm_1;
  if (crosses) return saved.residual_cross;
  return stack.is_parallel() ? saved.residual_pre : saved.residual_mid;
}

}  // namespace heed
