// Sums of a few rows of a matrix, and products with them: what sparse activations multiply.
// kernels/reference/sparse_rows.h has plain ones. On the caller's thread.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace heed::kernels {

// Rows of a matrix (R, C), dense in the last dimension, with a factor each; a row may be there
// several times. Indices are not checked.
struct SparseRows {
  View<const float> matrix;
  std::span<const std::int32_t> indices;  // (E)
  std::span<const float> factors{};       // (E), of add_sparse_rows
};

// out (C) += Σ_e factors[e] · matrix[indices[e]], each element in the order of e.
void add_sparse_rows(const SparseRows& rows, std::span<float> out);

// products (E): products[e] += x (C) · matrix[indices[e]].
void multiply_sparse_rows(const SparseRows& rows, std::span<const float> x,
                          std::span<float> products);

}  // namespace heed::kernels
