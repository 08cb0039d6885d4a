#include "kernels/cuda/rows.h"

#include "kernels/cuda/row_threads.h"

namespace heed_cuda {
namespace {

bool has_quads(const HeedRows& rows, long long columns) {
  return is_aligned(rows.data) && rows.column == 1 && rows.row % 4 == 0 && columns % 4 == 0;
}

// Where a thread's columns of a row are: one column, or four beside each other.
template <int group>
HEED_DEVICE float* place(const HeedRows& rows, long long row, long long at) {
  return rows.data + row * rows.row + at * (group == 4 ? 4 : rows.column);
}

template <int group>
HEED_DEVICE void load_columns(const float* from, float (&to)[4]) {
  if constexpr (group == 4) {
    load_quad(from, to);
  } else {
    to[0] = *from;
  }
}
template <int group>
HEED_DEVICE void store_columns(const float (&from)[4], float* to) {
  if constexpr (group == 4) {
    store_quad(from, to);
  } else {
    *to = from[0];
  }
}

template <int group>
__global__ void __launch_bounds__(element_threads) gather(const HeedGather operands) {
  const long long width = operands.columns / group;
  for (long long i = first_item(); i < operands.rows * width; i += item_step()) {
    const long long row = i / width, at = i - row * width;
    float values[4];
    load_columns<group>(place<group>(operands.from, operands.indices[row], at), values);
    store_columns<group>(values, place<group>(operands.to, row, at));
  }
}

// A thread has the same columns of all rows of a group, and adds them in order; several rows are
// loaded at once. Latency is the limit where a group has many rows, bytes elsewhere.
constexpr int rows_at_once = 4;
template <int group>
__global__ void __launch_bounds__(element_threads) add_rows(const HeedGroupedRows operands) {
  const long long width = operands.columns / group;
  const float factor = operands.factor;
  for (long long i = first_item(); i < operands.groups * width; i += item_step()) {
    const long long g = i / width, at = i - g * width;
    float* const to = place<group>(operands.to, operands.destinations[g], at);
    float sum[4];
    load_columns<group>(to, sum);
    const int end = operands.begins[g + 1];
    for (int begin = operands.begins[g]; begin < end; begin += rows_at_once) {
      float values[rows_at_once][4];
      for (int n = 0; n < rows_at_once; ++n) {
        if (begin + n >= end) continue;
        load_columns<group>(place<group>(operands.from, operands.order[begin + n], at), values[n]);
      }
      for (int n = 0; n < rows_at_once; ++n) {
        if (begin + n >= end) continue;
        for (int j = 0; j < group; ++j) sum[j] = fmaf(factor, values[n][j], sum[j]);
      }
    }
    store_columns<group>(sum, to);
  }
}

// What follows is rare: one thread of a row after another has a column, and sums are in double.

HEED_DEVICE float& element(const HeedRows& rows, long long row, long long column) {
  return rows.data[row * rows.row + column * rows.column];
}
HEED_DEVICE float& element(const HeedNumbers& numbers, long long index) {
  return numbers.data[index * numbers.stride];
}

// body(column) for the columns of this thread.
template <int threads, class Body>
HEED_DEVICE void for_columns(long long columns, const Body& body) {
  for (long long c = RowThreads<threads>::thread(); c < columns; c += threads) body(c);
}

constexpr float infinity = __builtin_huge_valf();

template <int threads>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    softmax(const HeedSoftmaxRows operands) {
  using Team = RowThreads<threads>;
  const long long n = Team::row();
  if (n >= operands.rows) return;
  float largest = -infinity;
  for_columns<threads>(operands.columns, [&](long long s) {
    largest = fmaxf(largest, element(operands.scores, n, s));
  });
  largest = Team::max(largest);
  const bool is_masked = largest == -infinity;
  double total = 0;
  for_columns<threads>(operands.columns, [&](long long s) {
    const float share = is_masked ? 0.0F : expf(element(operands.scores, n, s) - largest);
    element(operands.out, n, s) = share;
    total += static_cast<double>(share);
  });
  total = Team::sum(total);
  if (is_masked) return;
  for_columns<threads>(operands.columns, [&](long long s) {
    float& share = element(operands.out, n, s);
    share = static_cast<float>(static_cast<double>(share) / total);
  });
}

template <int threads>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    softmax_backward(const HeedSoftmaxRows operands) {
  using Team = RowThreads<threads>;
  const long long n = Team::row();
  if (n >= operands.rows) return;
  double total = 0;
  for_columns<threads>(operands.columns, [&](long long s) {
    total +=
        static_cast<double>(__fmul_rn(element(operands.scores, n, s), element(operands.out, n, s)));
  });
  const auto subtracted = static_cast<float>(Team::sum(total));
  for_columns<threads>(operands.columns, [&](long long s) {
    float& gradient = element(operands.out, n, s);
    gradient = element(operands.scores, n, s) * (gradient - subtracted);
  });
}

// A thread has an element, whose products are added in order.
__global__ void __launch_bounds__(element_threads) mix(const HeedMixRows operands) {
  for (long long i = first_item(); i < operands.rows * operands.columns; i += item_step()) {
    const long long n = i / operands.columns, d = i - n * operands.columns;
    double total = 0;
    for (long long s = 0; s < operands.shared; ++s) {
      const float share = element(operands.pattern, n, s);
      if (share == 0.0F) continue;
      total = fma(static_cast<double>(share), static_cast<double>(element(operands.value, s, d)),
                  total);  // the product is exact
    }
    element(operands.out, n, d) = static_cast<float>(total);
  }
}

// Each operation of these is rounded: no fused multiply-add.

__global__ void __launch_bounds__(element_threads) standardise(const HeedNormRows operands) {
  for (long long i = first_item(); i < operands.rows * operands.columns; i += item_step()) {
    const long long n = i / operands.columns, c = i - n * operands.columns;
    const float mean = operands.mean.data != nullptr ? element(operands.mean, n) : 0.0F;
    element(operands.out, n, c) =
        (element(operands.x, n, c) - mean) * element(operands.reciprocal_deviation, n);
  }
}

__global__ void __launch_bounds__(element_threads) gain_and_bias(const HeedNormRows operands) {
  for (long long i = first_item(); i < operands.rows * operands.columns; i += item_step()) {
    const long long n = i / operands.columns, c = i - n * operands.columns;
    const float value = __fmul_rn(element(operands.x, n, c), element(operands.gain, c));
    element(operands.out, n, c) =
        operands.bias.data != nullptr ? __fadd_rn(value, element(operands.bias, c)) : value;
  }
}

template <int threads>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    standardise_backward(const HeedNormRows operands) {
  using Team = RowThreads<threads>;
  const long long n = Team::row();
  if (n >= operands.rows) return;
  const float mean = operands.mean.data != nullptr ? element(operands.mean, n) : 0.0F;
  const float factor = element(operands.reciprocal_deviation, n);
  double total = 0;
  for_columns<threads>(operands.columns, [&](long long c) {
    const float gradient = __fmul_rn(element(operands.d_out, n, c), element(operands.gain, c));
    const float distance = element(operands.x, n, c) - mean;
    total += static_cast<double>(__fmul_rn(__fmul_rn(gradient, distance), factor));
    element(operands.out, n, c) = gradient;
  });
  total = Team::sum(total);
  if (Team::thread() == 0) element(operands.d_scale, n) = -factor * static_cast<float>(total);
}

template <int threads>
__global__ void __launch_bounds__(RowThreads<threads>::block)
    constant_scale_backward(const HeedNormRows operands) {
  using Team = RowThreads<threads>;
  const long long n = Team::row();
  if (n >= operands.rows) return;
  double total = 0;
  if (operands.subtracts_mean) {
    for_columns<threads>(operands.columns, [&](long long c) {
      total +=
          static_cast<double>(__fmul_rn(element(operands.d_out, n, c), element(operands.gain, c)));
    });
    total = Team::sum(total);
  }
  const auto mean = static_cast<float>(total / static_cast<double>(operands.columns));
  const float factor = element(operands.reciprocal_deviation, n);
  for_columns<threads>(operands.columns, [&](long long c) {
    const float gradient = __fmul_rn(element(operands.d_out, n, c), element(operands.gain, c));
    float& d_x = element(operands.out, n, c);
    d_x = __fadd_rn(d_x, __fmul_rn(gradient - mean, factor));
  });
}

// A kernel with a warp for a row, or with a block.
template <class Operands>
HeedCudaResult launch_rows(void (*of_warps)(Operands), void (*of_blocks)(Operands),
                           const Operands& operands) {
  if (operands.columns <= 512) {
    return launch(of_warps, RowThreads<warp_lanes>::grid(operands.rows),
                  RowThreads<warp_lanes>::block, 0, operands);
  }
  return launch(of_blocks, RowThreads<256>::grid(operands.rows), RowThreads<256>::block, 0,
                operands);
}

template <class Operands>
HeedCudaResult launch_each(void (*kernel)(Operands), const Operands& operands) {
  return launch(kernel, blocks_for(operands.rows * operands.columns, element_threads),
                element_threads, 0, operands);
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_gather_rows(const HeedGather* operands) {
  using namespace heed_cuda;
  const long long columns = operands->columns, elements = operands->rows * columns;
  if (has_quads(operands->from, columns) && has_quads(operands->to, columns)) {
    return launch(gather<4>, blocks_for(elements / 4, element_threads), element_threads, 0,
                  *operands);
  }
  return launch(gather<1>, blocks_for(elements, element_threads), element_threads, 0, *operands);
}

HeedCudaResult heed_cuda_add_grouped_rows(const HeedGroupedRows* operands) {
  using namespace heed_cuda;
  const long long columns = operands->columns, elements = operands->groups * columns;
  if (has_quads(operands->from, columns) && has_quads(operands->to, columns)) {
    return launch(add_rows<4>, blocks_for(elements / 4, element_threads), element_threads, 0,
                  *operands);
  }
  return launch(add_rows<1>, blocks_for(elements, element_threads), element_threads, 0, *operands);
}

HeedCudaResult heed_cuda_softmax_rows(const HeedSoftmaxRows* operands) {
  using namespace heed_cuda;
  return launch_rows(softmax<warp_lanes>, softmax<256>, *operands);
}

HeedCudaResult heed_cuda_softmax_rows_backward(const HeedSoftmaxRows* operands) {
  using namespace heed_cuda;
  return launch_rows(softmax_backward<warp_lanes>, softmax_backward<256>, *operands);
}

HeedCudaResult heed_cuda_mix_rows(const HeedMixRows* operands) {
  return heed_cuda::launch_each(heed_cuda::mix, *operands);
}

HeedCudaResult heed_cuda_standardise_rows(const HeedNormRows* operands) {
  return heed_cuda::launch_each(heed_cuda::standardise, *operands);
}

HeedCudaResult heed_cuda_standardise_rows_backward(const HeedNormRows* operands) {
  using namespace heed_cuda;
  return launch_rows(standardise_backward<warp_lanes>, standardise_backward<256>, *operands);
}

HeedCudaResult heed_cuda_constant_scale_norm_backward(const HeedNormRows* operands) {
  using namespace heed_cuda;
  return launch_rows(constant_scale_backward<warp_lanes>, constant_scale_backward<256>, *operands);
}

HeedCudaResult heed_cuda_apply_gain(const HeedNormRows* operands) {
  return heed_cuda::launch_each(heed_cuda::gain_and_bias, *operands);
}

}  // extern "C"
