// The matrix product behind every linear layer: our own, because its operands are ours to lay out,
// and its results to finish while they are still near.
#pragma once

#include <cstdint>

#include "kernels/operands.h"

namespace heed::kernels {

// A matrix in memory, row by row, `stride` elements apart.
struct ProductOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;  // stored as its transpose
};

// C (rows, columns) = initial + A (rows, inner) · B (inner, columns). Sums run over `inner` in an
// order that depends on its length and the instruction set alone: not on the other sizes, nor on
// the number of threads.
struct Product {
  ProductOperand a;
  ProductOperand b;
  float* c = nullptr;  // dense
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  const float* initial = nullptr;   // null for zero; may be c
  std::int64_t initial_stride = 0;  // 0: one row, such as a bias, for all
  Precision precision = Precision::f32;
};

void multiply(const Product& product);

}  // namespace heed::kernels
