#include "kernels/cuda/rotary.h"

#include "kernels/cuda/for_elements.h"

namespace heed_cuda {
namespace {

HEED_DEVICE void rotate(float& first, float& second, float cosine, float sine) {
  const float rotated = fmaf(-second, sine, first * cosine);
  second = fmaf(first, sine, second * cosine);
  first = rotated;
}

// Bytes are the limit: a thread has `group` pairs of a head. Angles are read once more for each
// head, from a cache.
template <bool neighbours, int group>
__global__ void __launch_bounds__(element_threads) rotate_pairs(const HeedRotary operands) {
  const long long width = operands.pairs / group;
  const long long count = operands.rows * operands.heads * width;
  const long long first_angle = repetition_of(operands.repetition) * operands.rows;
  for (long long i = first_item(); i < count; i += item_step()) {
    const long long vector = i / width, pair = (i - vector * width) * group;
    const long long row = vector / operands.heads, head = vector - row * operands.heads;
    float* const x = operands.x + row * operands.row_stride + head * operands.head_stride;
    const long long angle = (first_angle + row) * operands.pairs + pair;
    if constexpr (group == 4) {
      float cosine[4], sine[4], a[4], b[4];
      load_quad(operands.cosine + angle, cosine);
      load_quad(operands.sine + angle, sine);
      float* const from = neighbours ? x + 2 * pair : x + pair;
      float* const other = neighbours ? from + 4 : from + operands.pairs;
      load_quad(from, a);
      load_quad(other, b);
      for (int j = 0; j < 4; ++j) sine[j] *= operands.direction;
      if constexpr (neighbours) {
        rotate(a[0], a[1], cosine[0], sine[0]);
        rotate(a[2], a[3], cosine[1], sine[1]);
        rotate(b[0], b[1], cosine[2], sine[2]);
        rotate(b[2], b[3], cosine[3], sine[3]);
      } else {
        for (int j = 0; j < 4; ++j) rotate(a[j], b[j], cosine[j], sine[j]);
      }
      store_quad(a, from);
      store_quad(b, other);
    } else {
      rotate(x[neighbours ? 2 * pair : pair], x[neighbours ? 2 * pair + 1 : pair + operands.pairs],
             operands.cosine[angle], operands.direction * operands.sine[angle]);
    }
  }
}

template <bool neighbours>
HeedCudaResult launch_pairs(const HeedRotary& operands) {
  const long long pairs = operands.rows * operands.heads * operands.pairs;
  if (operands.pairs % 4 == 0 && operands.row_stride % 4 == 0 && operands.head_stride % 4 == 0 &&
      is_aligned(operands.x) && is_aligned(operands.cosine) && is_aligned(operands.sine)) {
    return launch(rotate_pairs<neighbours, 4>, blocks_for(pairs / 4, element_threads),
                  element_threads, 0, operands);
  }
  return launch(rotate_pairs<neighbours, 1>, blocks_for(pairs, element_threads), element_threads, 0,
                operands);
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_rotate_heads(const HeedRotary* operands) {
  return operands->neighbours ? heed_cuda::launch_pairs<true>(*operands)
                              : heed_cuda::launch_pairs<false>(*operands);
}

}  // extern "C"
