// Attention of a decoder to the result of an encoder: queries from one sequence, keys and values
// from another (Vaswani et al. 2017, 3.2.3).
#pragma once

#include "model/stages.h"

namespace heed {

// From what the branch reads (N, C) to block.branch_out (N, C); block.cross is filled. Keys and
// values are projected from the rows of the pass's memory, unless it holds them in caches.
void cross_attention_forward(const LayerPass& at, const BlockActivations& block);

// Projects the memory's rows to keys and values, (M, 2K), and stores those of each source in its
// cache, once for all passes that attend to them.
void store_memory(const LayerPass& at, const CrossMemory& memory);

// d_x (N, C), overwritten, from d_out (N, C); parameter gradients accumulate, and so does the
// gradient of the memory's rows, d_memory (M, C).
struct CrossAttentionBackward {
  View<const float> x;      // (N, C), as in forward
  View<const float> d_out;  // (N, C)
  View<float> d_x;          // (N, C)
  View<float> d_memory;     // (M, C)
};
void cross_attention_backward(const LayerPass& at, const BlockGradients& gradients,
                              const CrossActivations& saved, const ActivationGradients& buffers,
                              const CrossAttentionBackward& operands);

}  // namespace heed
