// Composition scores: how strongly a head reads the output of an earlier head, from weights alone.
#pragma once

#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

enum class CompositionKind {
  query,  // Q-composition: the earlier output enters the later query
  key,    // K-composition: … the later key
  value,  // V-composition: … the later value
};

// scores (L, H, L, H): [l1, h1, l2, h2] is ‖W_OV·W‖ / (‖W_OV‖·‖W‖), Frobenius norms, for the
// earlier head (l1, h1) and W = W_QK, W_QKᵀ or W_OV of the later one; 0 unless l1 < l2 (Elhage et
// al., A Mathematical Framework for Transformer Circuits, 2021; TransformerLens:
// all_composition_scores). Computed from D x D products of the factors; no C x C matrix is
// formed. Uses the weights as they are: process them first (weight_processing.h) to fold the norms
// into them. W_QK is that of LayerHeads: of equal positions where they are rotary.
Tensor<float> composition_scores(const Transformer& gpt, CompositionKind kind);

}  // namespace heed
