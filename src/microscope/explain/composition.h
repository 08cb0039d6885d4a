// How strongly a head reads what an earlier head writes, by the weights alone.
#pragma once

#include "model/gpt.h"
#include "tensor/tensor.h"

namespace heed {

enum class CompositionKind {
  query,  // the earlier head's output decides what the later one asks for
  key,    // … what it finds
  value,  // … what it carries on
};

// scores (L, H, L, H): [l1, h1, l2, h2] is ‖W_OV·W‖ / (‖W_OV‖·‖W‖), Frobenius norms, for the
// earlier head (l1, h1) and W = W_QK, W_QKᵀ or W_OV of the later one; 0 unless l1 < l2 (Elhage et
// al., A Mathematical Framework for Transformer Circuits, 2021; TransformerLens:
// all_composition_scores). Computed from D x D products of the factors; a C x C matrix never
// exists. Of the weights as they are: process them first (weight_processing.h) to leave the norms'
// gains in and the means out.
Tensor<float> composition_scores(const Gpt& gpt, CompositionKind kind);

}  // namespace heed
