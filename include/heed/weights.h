// The weights of a model by TransformerLens's names, as views of the model's own memory.
//
//   heed::SharedView keys = heed::weight(model, "blocks.3.attn.W_K");  // (G, C, D)
//
// Weights apply to rows as x·W: W_E (V, C), W_pos (P, C), W_Q (H, C, D), W_K and W_V (G, C, D), W_O
// (H, D, C), W_in and W_gate (C, F), W_out (F, C), W_U (C, V); biases b_Q (H, D), b_K and b_V
// (G, D), b_O (C), b_gate and b_in (F), b_out (C), b_U (V); norms w and b (C). Biases that a model
// lacks are left out. Without its block, "attn.W_K" is that of all layers, (L, G, C, D).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/activations.h"

namespace heed {

// In the order of a forward pass.
std::vector<std::string> weight_names(const Model& model);

// Without an owner: the memory is the model's. In f32, also where the model computes with quantised
// weights. Throws Error{not_found}, with the nearest names, for one that the model does not have.
SharedView weight(const Model& model, std::string_view name);

// Whether passes read the f32 weights themselves, so that a change takes effect at once; else they
// read quantised or packed copies, or those of a GPU.
bool computes_with_views(const Model& model);

}  // namespace heed
