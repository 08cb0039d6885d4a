// The matrices of heads: how heads compose, and the same heads by other factors.
//
//   heed::Array scores = heed::composition_scores(model, heed::CompositionKind::value);
#pragma once

#include "heed/array.h"

namespace heed {

class Model;

// Composition scores: how strongly a head reads the output of an earlier head, from weights alone.
enum class CompositionKind {
  query,  // Q-composition: the earlier output enters the later query
  key,    // K-composition: … the later key
  value,  // V-composition: … the later value
};

// scores (L, H, L, H): [l1, h1, l2, h2] is ‖W_OV·W‖ / (‖W_OV‖·‖W‖), Frobenius norms, for the
// earlier head (l1, h1) and W = W_QK, W_QKᵀ or W_OV of the later one; 0 unless l1 < l2 (Elhage et
// al., A Mathematical Framework for Transformer Circuits, 2021). Of the weights as they are
// (save_processed folds norms into them), with the gains of norms of queries and keys. Throws
// Error{unsupported} for a model whose stream is no sum of what its heads write.
Array composition_scores(const Model& model, CompositionKind kind);

// Replaces the factors of every head, in the model's memory, by others of the same products (Nanda
// and Bloom, TransformerLens, 2022: refactor_factored_attn_matrices): those of W_Q·W_Kᵀ with its
// biases by U·√S and V·√S, those of W_V·W_O by U and S·Vᵀ, of singular vectors U, V and values S.
// The projection adds what biases of values did. Throws Error{unsupported} where queries and keys
// are turned or normed, heads share keys, or passes do not read the weights themselves
// (computes_with_views).
void refactor_heads(const Model& model);

}  // namespace heed
