// Operations over whole arenas. All are limited by bytes, so each reads and writes every element
// once.
#include "kernels/cuda/optimizer.h"

#include "kernels/cuda/for_elements.h"

namespace heed_cuda {
namespace {

struct Update {  // parameter, gradient, both moments; parameter, both moments
  static constexpr int inputs = 4, outputs = 3;
  HeedAdamW step;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    const float gradient = in[1] * step.gradient_scale;
    const float first = fmaf(step.beta1, in[2], (1.0F - step.beta1) * gradient);
    const float second = fmaf(step.beta2, in[3], (1.0F - step.beta2) * gradient * gradient);
    const float deviation = sqrtf(second * step.unbias2) + step.epsilon;
    const float change = fmaf(step.weight_decay, in[0], first * step.unbias1 / deviation);
    out[0] = fmaf(-step.learning_rate, change, in[0]);
    out[1] = first;
    out[2] = second;
  }
};

struct FindNotFinite {
  static constexpr int inputs = 1, outputs = 0;
  unsigned* found;
  HEED_DEVICE void operator()(const float* in, float*) const {
    constexpr unsigned exponent = 0x7F800000U;
    if ((__float_as_uint(in[0]) & exponent) == exponent) atomicOr(found, 1U);
  }
};

// The sums of parts, and then of those: in an order that depends on the size alone.
__global__ void __launch_bounds__(element_threads) sum_squares(const HeedSquaredNorm operands) {
  __shared__ double room_of_warps[element_threads / warp_lanes];
  double sums[4] = {};
  const bool aligned = reinterpret_cast<size_t>(operands.x) % 16 == 0;
  const long long quads = operands.count / 4;
  for (long long i = first_item(); i < quads; i += item_step()) {
    float values[4];
    if (aligned) {
      load_quad(operands.x + 4 * i, values);
    } else {
      for (int j = 0; j < 4; ++j) values[j] = operands.x[4 * i + j];
    }
    for (int j = 0; j < 4; ++j) {
      const auto value = static_cast<double>(values[j]);
      sums[j] = fma(value, value, sums[j]);
    }
  }
  for (long long i = 4 * quads + first_item(); i < operands.count; i += item_step()) {
    const auto value = static_cast<double>(operands.x[i]);
    sums[0] = fma(value, value, sums[0]);
  }
  const double sum = block_sum((sums[0] + sums[1]) + (sums[2] + sums[3]), room_of_warps);
  if (threadIdx.x == 0) operands.sums[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(element_threads) sum_parts(const HeedSquaredNorm operands) {
  __shared__ double room_of_warps[element_threads / warp_lanes];
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < operands.parts; i += element_threads) {
    sum += operands.sums[i];
  }
  sum = block_sum(sum, room_of_warps);
  if (threadIdx.x == 0) *operands.result = sum;
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_adamw_step(const HeedAdamW* operands) {
  heed_cuda::Elements<heed_cuda::Update> elements{};
  elements.operation.step = *operands;
  elements.count = operands->count;
  elements.in[0] = elements.out[0] = operands->parameters;
  elements.in[1] = operands->gradients;
  elements.in[2] = elements.out[1] = operands->first_moment;
  elements.in[3] = elements.out[2] = operands->second_moment;
  return heed_cuda::launch_elements(elements);
}

HeedCudaResult heed_cuda_squared_norm(const HeedSquaredNorm* operands) {
  using namespace heed_cuda;
  const HeedCudaResult failed = launch(sum_squares, dim3(static_cast<unsigned>(operands->parts)),
                                       element_threads, 0, *operands);
  if (failed != nullptr) return failed;
  return launch(sum_parts, 1, element_threads, 0, *operands);
}

HeedCudaResult heed_cuda_find_not_finite(const HeedAllFinite* operands) {
  heed_cuda::Elements<heed_cuda::FindNotFinite> elements{};
  elements.operation.found = operands->found;
  elements.count = operands->count;
  elements.in[0] = operands->x;
  return heed_cuda::launch_elements(elements);
}

}  // extern "C"
