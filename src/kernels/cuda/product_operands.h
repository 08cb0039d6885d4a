// What a product on a device multiplies, by its precision and the choice of f32_products().
#pragma once

#include "heed/f32_products.h"
#include "kernels/cuda/products.h"
#include "kernels/operands.h"

namespace heed::kernels::cuda {

inline HeedProductOperands product_operands(Precision precision) {
  if (precision == Precision::bf16) return heed_product_bf16;
  return f32_products() == F32Products::tf32 ? heed_product_tf32 : heed_product_f32;
}

}  // namespace heed::kernels::cuda
