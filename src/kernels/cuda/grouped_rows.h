// Sums of rows by the rows that they belong to.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cuda/rows.h"
#include "tensor/view.h"

namespace heed::kernels::cuda {

template <class T>
HeedRows rows_of(const View<T>& matrix) {
  return {const_cast<std::remove_const_t<T>*>(matrix.data()), matrix.stride(0), matrix.stride(1)};
}

// Row indices[n] of `to` (R, C), on the device, accumulates factor · row n of `from` (N, C), in the
// order of n. The indices, which are the processor's, are rows of `to`.
void add_grouped_rows(View<const float> from, std::span<const std::int32_t> indices, float factor,
                      View<float> to);

}  // namespace heed::kernels::cuda
