// Plain versions of kernels/sparse_rows.h, in any precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace heed::kernels::reference {

template <class T>
void add_sparse_rows(View<const T> matrix, std::span<const std::int32_t> indices,
                     std::span<const T> factors, std::span<T> out) {
  for (std::size_t e = 0; e < indices.size(); ++e) {
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += factors[e] * matrix(indices[e], c);
  }
}

template <class T>
void multiply_sparse_rows(View<const T> matrix, std::span<const std::int32_t> indices,
                          std::span<const T> x, std::span<T> products) {
  for (std::size_t e = 0; e < indices.size(); ++e) {
    for (std::size_t c = 0; c < x.size(); ++c) products[e] += x[c] * matrix(indices[e], c);
  }
}

}  // namespace heed::kernels::reference
