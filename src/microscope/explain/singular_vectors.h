// Singular vectors of a head's low-rank products W_QK and W_OV: its main input and output
// directions.
#pragma once

#include <vector>

#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

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
SingularVectors singular_vectors(const Transformer& gpt, HeadCircuit circuit, std::int64_t layer,
                                 std::int64_t head);

}  // namespace heed
