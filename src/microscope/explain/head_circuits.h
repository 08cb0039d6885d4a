// The matrices of heads (OV, QK), how heads compose, and the directions that a head reads and
// writes most.
#pragma once

#include <vector>

#include "heed/circuits.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

// The attention weights of one layer by query head, as rows (D, C) that read from or write to the
// stream. Query heads of a group have the same key and value. Where queries and keys have norms of
// their own, rows of queries and keys are multiplied by the gains: scores are then their products
// up to a positive factor for each token. Rotary positions turn queries and keys after these rows:
// W_QK is that of a position and itself.
// In TransformerLens's notation, x·W: W_Q = queryᵀ, W_K = keyᵀ, W_V = valueᵀ (C, D) and W_O =
// output (D, C). So W_QK = queryᵀ·key and W_OV = valueᵀ·output, both (C, C) of rank D.
class LayerHeads {
 public:
  LayerHeads(const Transformer& model, std::int64_t layer);

  View<const float> query(std::int64_t head) const;  // (D, C)
  View<const float> key(std::int64_t head) const;
  View<const float> value(std::int64_t head) const;
  View<const float> output(std::int64_t head) const;

  // All heads stacked: queries and outputs (A, C), keys and values (K, C).
  View<const float> all_queries() const;
  View<const float> all_keys() const;
  View<const float> all_values() const;
  View<const float> all_outputs() const { return outputs_; }

 private:
  View<const float> head_rows(View<const float> rows, std::int64_t head) const;

  const AttentionSpecification& attention_;
  View<const float> query_key_value_;  // (A + 2K, C)
  Tensor<float> with_gains_;           // (A + 2K, C), where queries and keys have norms
  Tensor<float> outputs_;              // (A, C), the projection transposed
};

// scores (L, H, L, H): [l1, h1, l2, h2] is ‖W_OV·W‖ / (‖W_OV‖·‖W‖), Frobenius norms, for the
// earlier head (l1, h1) and W = W_QK, W_QKᵀ or W_OV of the later one; 0 unless l1 < l2 (Elhage et
// al., A Mathematical Framework for Transformer Circuits, 2021; TransformerLens:
// all_composition_scores). Computed from D x D products of the factors; no C x C matrix is
// formed. Uses the weights as they are: process them first (weight_processing.h) to fold the norms
// into them. W_QK is that of LayerHeads: of equal positions where they are rotary.
Tensor<float> composition_scores(const Transformer& model, CompositionKind kind);

// Singular vectors of a head's low-rank products W_QK and W_OV: its main input and output
// directions.
enum class HeadCircuit {
  query_key,     // W_QK = W_Q·W_Kᵀ: left on the query side, right on the key side
  output_value,  // W_OV = W_V·W_O: left is read from the stream, right is written to it
};

// The product (C, C), applied as x·W, is Σᵢ values[i] · left[i]ᵀ·right[i].
struct SingularVectors {
  std::vector<double> values;  // (D), largest first
  Tensor<float> left;          // (D, C), rows of length one
  Tensor<float> right;         // (D, C)
};

// By QR of both factors (C, D) and an SVD of the D x D product of their triangles; no C x C matrix
// is formed (Millidge and Black, The Singular Value Decompositions of Transformer Weight Matrices
// are Highly Interpretable, 2022; TransformerLens: FactoredMatrix.svd). Each pair's sign makes the
// largest element of its left vector positive. Uses the weights as they are; see
// weight_processing.h. Throws Error{invalid_argument} for a head that does not exist.
SingularVectors singular_vectors(const Transformer& model, HeadCircuit circuit, std::int64_t layer,
                                 std::int64_t head);

// Replaces the factors of every head by others of the same products: see heed/circuits.h, but for
// how the model is loaded.
void refactor_heads(Transformer& model);

}  // namespace heed
