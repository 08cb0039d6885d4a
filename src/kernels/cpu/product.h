// The matrix product of all linear layers, with operands in heed's own layouts and a fused
// epilogue.
#pragma once

#include <cstdint>

#include "kernels/operands.h"
#include "kernels/packed_weight.h"
#include "kernels/prepared_weight.h"

namespace heed::kernels {

// A matrix in memory, row by row, `stride` elements apart.
struct ProductOperand {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;  // stored as its transpose
};

// C (rows, columns) = initial + A (rows, inner) · B (inner, columns). The order of summation over
// `inner` depends on its length and the instruction set only: not on the other sizes, nor on the
// number of threads.
struct Product {
  ProductOperand a;
  ProductOperand b;
  const PreparedWeight* prepared_b = nullptr;  // in place of b: (columns, inner)
  const PackedWeight* packed_b = nullptr;      // the same matrix as b; used if suitable
  float* c = nullptr;                          // dense
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  const float* initial = nullptr;   // null for zero; may be c
  std::int64_t initial_stride = 0;  // 0: one row, such as a bias, for all
  Precision precision = Precision::f32;
};

void multiply(const Product& product);

// A panel of prepared weights in f32, as panels of fewer outputs side by side: (inputs, columns)
// for each `columns` of its 32 outputs, whole vectors, `stride` floats apart.
struct RestoredPanel {
  float* to;
  std::int64_t columns = PreparedWeight::panel_outputs;
  std::int64_t stride = 0;

  // Of the panel's first input; the next ones are `columns` floats further each.
  float* column(std::int64_t output) const {
    return to + output / columns * stride + output % columns;
  }
};

// Inputs [first, first + count), a multiple of 32 from a multiple of 32 on, of a panel.
void read_prepared_panel(const PreparedWeight& weight, std::int64_t index, std::int64_t first,
                         std::int64_t count, const RestoredPanel& restored);

}  // namespace heed::kernels
