// The matrix product behind every linear layer, in f32: our own, because its operands are ours to
// lay out, and its results to finish while they are still in registers.
#pragma once

#include <cstdint>

namespace heed::kernels {

// A matrix in memory, row by row, `stride` elements apart.
struct ProductOperand {
  const float* data;
  std::int64_t stride;
  bool transposed = false;  // stored as its transpose
};

// C (rows, columns) = initial + A (rows, inner) · B (inner, columns). Every element is one chain of
// multiply-adds in the order of `inner`, whatever the shape and the number of threads.
struct Product {
  ProductOperand a;
  ProductOperand b;
  float* c;  // dense
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t inner;
  const float* initial = nullptr;   // null for zero; may be c
  std::int64_t initial_stride = 0;  // 0: one row, such as a bias, for all
};

// A rectangle of C and a stretch of `inner`, from k on.
struct ProductBlock {
  std::int64_t row;
  std::int64_t rows;
  std::int64_t column;
  std::int64_t columns;
  std::int64_t k;
  std::int64_t inner;
};

void multiply(const Product& product);

}  // namespace heed::kernels
