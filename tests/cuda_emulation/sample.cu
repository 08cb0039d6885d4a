// Device code of each kind that the project has, for ptx.sh and the emulation's tests: exchanges of
// a warp, shared memory, atomics, mathematics, bf16 and the matrix product of a warp.
#include "sample.h"

#include <cmath>
#include <cstdint>

#include "cuda_bf16.h"
#include "cuda_runtime.h"

namespace {

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffU, value, step);
  return value;
}

// out[block] = the sum of the block's row, of any length.
__global__ void __launch_bounds__(256) sum_rows(const SumOperands operands) {
  __shared__ float sums[8];
  float sum = 0.0F;
  for (int i = static_cast<int>(threadIdx.x); i < operands.columns;
       i += static_cast<int>(blockDim.x)) {
    sum += operands.in[static_cast<std::size_t>(blockIdx.x) * operands.columns + i];
  }
  sum = warp_sum(sum);
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x >= warpSize) return;
  sum = warp_sum(threadIdx.x < blockDim.x / warpSize ? sums[threadIdx.x] : 0.0F);
  if (threadIdx.x == 0) operands.out[blockIdx.x] = sum;
}

__device__ void multiply_add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                             const float (&c)[4]) {
#if defined(HEED_CUDA_EMULATION)
  heed::emulation::mma_m16n8k16_bf16(d, a, b, c);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
#endif
}

// out (16, 8) = a (16, 16) · b (16, 8), row-major; one warp.
__global__ void multiply(const float* a, const float* b, float* out) {
  const unsigned group = threadIdx.x / 4, member = threadIdx.x % 4;
  const auto pair = [](float first, float second) {
    return static_cast<unsigned>(__bfloat16_as_ushort(__float2bfloat16_rn(first))) |
           static_cast<unsigned>(__bfloat16_as_ushort(__float2bfloat16_rn(second))) << 16;
  };
  unsigned a_part[4], b_part[2];
  for (unsigned i = 0; i < 4; ++i) {
    const float* from = a + (group + i % 2 * 8) * 16 + member * 2 + i / 2 * 8;
    a_part[i] = pair(from[0], from[1]);
  }
  for (unsigned i = 0; i < 2; ++i) {
    const float* from = b + (member * 2 + i * 8) * 8 + group;
    b_part[i] = pair(from[0], from[8]);
  }
  float d[4];
  const float zeros[4] = {};
  multiply_add(d, a_part, b_part, zeros);
  for (unsigned i = 0; i < 4; ++i) out[(group + i / 2 * 8) * 8 + member * 2 + i % 2] = d[i];
}

// Counts of values by the sign and the magnitude of their mathematics, to use each function once.
__global__ void functions(const float* in, float* out, unsigned* counts, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const unsigned active = __ballot_sync(0xffffffffU, i < n);
  if (i >= n) return;
  const float x = __ldg(in + i);
  const float y = expf(-fabsf(x)) + logf(1.0F + x * x) + sqrtf(fabsf(x)) + rsqrtf(1.0F + x * x) +
                  tanhf(x) + erff(x) + fmaf(x, x, 1.0F) + fmaxf(x, 0.0F) + fminf(x, 0.0F) +
                  floorf(x) + exp2f(-fabsf(x)) + log2f(1.0F + x * x) + powf(fabsf(x), 0.5F) +
                  __expf(-fabsf(x)) + __logf(1.0F + x * x) + __fdividef(x, 2.0F) + __fmul_rn(x, x) +
                  __fadd_rn(x, x) + __fsub_rn(x, 1.0F) + __fmaf_rn(x, x, 1.0F) +
                  __frcp_rn(1.0F + x * x) + __fsqrt_rn(fabsf(x)) + __fdiv_rn(x, 3.0F) +
                  __uint_as_float(__float_as_uint(x)) + __int_as_float(__float_as_int(x));
  const double z = sqrt(fabs(static_cast<double>(x))) + exp(-1.0) + log(2.0);
  out[i] = isinf(y) ? INFINITY : y + static_cast<float>(z);
  atomicAdd(counts, 1U);
  atomicMax(counts + 1, static_cast<unsigned>(__popc(active)));
  atomicAdd(out + n, x);
  if (__any_sync(__activemask(), x > 0.0F)) atomicExch(counts + 2, static_cast<unsigned>(__clz(1)));
}

template <class... Parameters, class... Arguments>
cudaError_t start(dim3 grid, dim3 block, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

const char* text_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace

extern "C" const char* heed_sample_sum_rows(const SumOperands* operands) {
  return text_of(
      start(dim3(static_cast<unsigned>(operands->rows)), dim3(256), sum_rows, *operands));
}

extern "C" const char* heed_sample_multiply(const float* a, const float* b, float* out) {
  return text_of(start(dim3(1), dim3(32), multiply, a, b, out));
}

extern "C" const char* heed_sample_functions(const float* in, float* out, unsigned* counts, int n) {
  return text_of(
      start(dim3(static_cast<unsigned>(n + 127) / 128), dim3(128), functions, in, out, counts, n));
}
