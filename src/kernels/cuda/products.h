/* Matrix products of f32 and bf16, and products of a few rows. */
#pragma once

#include "tensor/device_library.h"

/* What a and b hold, or, of TF32, hold in f32 and are rounded to: 10 bits of mantissa. */
enum HeedProductOperands { heed_product_f32, heed_product_tf32, heed_product_bf16 };

/* d = op(a)·op(b), by columns: op(a) is (rows, depth), op(b) (depth, columns), d (rows, columns) of
   f32, each column after the other, `stride` elements apart. A row-major matrix is its transpose.
 */
struct HeedProduct {
  const void* a;
  const void* b;
  float* d;
  const float* bias; /* (rows), added to every column; null: none */
  long long rows, columns, depth;
  long long a_stride, b_stride, d_stride;
  int transposes_a, transposes_b;
  enum HeedProductOperands operands;
  int accumulates; /* d += */
};

/* to (rows, to_stride) = from (rows, columns), rounded to nearest even, with zeros after each row.
   to_stride is a multiple of 8, and `to` aligned to 16 bytes. */
struct HeedBf16Copy {
  const float* from;
  void* to;
  long long rows, columns, to_stride;
};

/* out (rows, outputs) = x (rows, inputs)·weightᵀ + bias. */
struct HeedDotProducts {
  const float* x;
  const float* weight; /* (outputs, inputs) */
  const float* bias;   /* (outputs); null: none */
  float* out;
  long long rows, inputs, outputs;
};

/* Up to so many rows are rounded by the product itself. */
enum { heed_rounded_rows = 8 };

/* The same in bf16: the weight is rounded, and so are up to heed_rounded_rows rows of x (rows,
   x_stride). More of them come in bf16, with zeros up to a multiple of 32 inputs. */
struct HeedRoundedProducts {
  const void* x;
  const float* weight;
  const float* bias;
  float* out;
  long long rows, inputs, outputs, x_stride;
};

/* sums (columns) += Σ over rows of x (rows, columns), by way of partial sums (slices, columns). */
struct HeedColumnSums {
  const float* x;
  float* partial;
  float* sums;
  long long rows, columns, slices;
};

#ifdef __cplusplus
extern "C" {
#endif

HeedCudaResult heed_cuda_product(const struct HeedProduct* operands);
HeedCudaResult heed_cuda_bf16_copy(const struct HeedBf16Copy* operands);
HeedCudaResult heed_cuda_dot_products(const struct HeedDotProducts* operands);
HeedCudaResult heed_cuda_rounded_products(const struct HeedRoundedProducts* operands);
HeedCudaResult heed_cuda_column_sums(const struct HeedColumnSums* operands);

#ifdef __cplusplus
}
#endif
