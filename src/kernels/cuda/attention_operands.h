// Operands of attention as the library's plain structs.
#pragma once

#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/launch.h"
#include "kernels/quantised_cache.h"

namespace heed::kernels::cuda {

// Rows of heads (B, positions, H, D), or scales (B, positions, H), whose numbers are of `bytes`.
template <class T>
HeedHeads plain_heads(const View<T>& view, std::int64_t bytes = sizeof(T)) {
  HeedHeads heads{};
  heads.data = const_cast<std::remove_const_t<T>*>(view.data());
  constexpr auto element = static_cast<std::int64_t>(sizeof(T));
  heads.batch = view.stride(0) * element;
  heads.position = view.stride(1) * element;
  heads.head = view.stride(2) * element;
  auto all = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(heads.data));
  const std::int64_t strides[] = {heads.batch, heads.position, heads.head};
  for (int i = 0; i < 3; ++i) {
    if (view.extent(i) > 1) all |= strides[i];
  }
  heads.vectors = all % (4 * bytes) == 0 ? 1 : 0;
  return heads;
}

// All but results.
HeedAttention plain_attention(const AttentionInput<float>& input);

}  // namespace heed::kernels::cuda
