// Heads of rows in memory, (N, H, D), as vectorised loops see them.
#pragma once

#include <cstdint>

#include "tensor/view.h"

namespace heed::kernels {

template <class T>
struct StridedHeads {
  T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t head_stride = 0;

  // From (N, H, D), or from rows (N, C) as one head each.
  explicit StridedHeads(const View<T>& view)
      : data(view.data()),
        row_stride(view.stride(0)),
        head_stride(view.rank() == 3 ? view.stride(1) : 0) {}

  T* at(std::int64_t row, std::int64_t head) const {
    return data + row * row_stride + head * head_stride;
  }
};

}  // namespace heed::kernels
