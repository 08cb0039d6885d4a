// What the kernels share, on the device. Compiled by nvcc, by Clang to PTX, and as C++ for the
// tests' emulation of a device: no <<<>>>, no dynamic parallelism, no libraries but the runtime.
#pragma once

#include <cuda_runtime.h>

#include "tensor/device_library.h"

#if defined(__CUDACC__) || defined(__CUDA__) || defined(HEED_CUDA_EMULATION)
#define HEED_DEVICE __device__ __forceinline__
#endif

// Loops whose arrays must become registers.
#ifdef HEED_CUDA_EMULATION
#define HEED_UNROLL
#else
#define HEED_UNROLL _Pragma("unroll")
#endif

namespace heed_cuda {

constexpr int warp_lanes = 32;
constexpr unsigned whole_warp = 0xFFFFFFFFU;

// The one stream: what is launched is done in the order of the calls; or, while this thread
// records, what only captures.
cudaStream_t stream();
// This thread's calls go to the device that was opened.
cudaError_t use_device();
int multiprocessors();

inline HeedCudaResult result_of(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Launches kernel(operands).
template <class Operands>
HeedCudaResult launch(void (*kernel)(Operands), dim3 grid, dim3 block, size_t shared_bytes,
                      const Operands& operands) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return nullptr;
  const cudaError_t chosen = use_device();
  if (chosen != cudaSuccess) return cudaGetErrorString(chosen);
  if (shared_bytes > 48 * 1024) {
    const cudaError_t allowed = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                     cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                     static_cast<int>(shared_bytes));
    if (allowed != cudaSuccess) return cudaGetErrorString(allowed);
  }
  cudaLaunchConfig_t configuration = {};
  configuration.gridDim = grid;
  configuration.blockDim = block;
  configuration.dynamicSmemBytes = shared_bytes;
  configuration.stream = stream();
  return result_of(cudaLaunchKernelEx(&configuration, kernel, operands));
}

// Blocks of `threads` for `items`, as many as a grid's first dimension takes; kernels loop.
inline dim3 blocks_for(long long items, int threads) {
  const long long blocks = (items + threads - 1) / threads;
  return dim3(static_cast<unsigned>(blocks < (1LL << 30) ? blocks : (1LL << 30)));
}

#ifdef HEED_DEVICE

// Of launches that are recorded; 0 where there is no number.
HEED_DEVICE int repetition_of(const int* number) { return number == nullptr ? 0 : *number; }

// Of the block, as the launch gave it.
HEED_DEVICE void* dynamic_shared_memory() {
#ifdef HEED_CUDA_EMULATION
  return heed::emulation::dynamic_shared();
#else
  extern __shared__ __align__(16) unsigned char heed_dynamic_shared_memory[];
  return heed_dynamic_shared_memory;
#endif
}

// The first item of a thread, and how far the next one is: for (i = first_item(); i < n; i +=
// item_step()).
HEED_DEVICE long long first_item() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
HEED_DEVICE long long item_step() { return static_cast<long long>(gridDim.x) * blockDim.x; }

// Offset of element `index`, counted in the order of a contiguous view, of any strides.
HEED_DEVICE long long offset_of(const HeedView& view, long long index) {
  long long offset = 0;
  for (int i = HEED_CUDA_MAX_RANK - 1; i >= 0; --i) {
    if (i >= view.rank) continue;
    offset += index % view.extent[i] * view.stride[i];
    index /= view.extent[i];
  }
  return offset;
}

HEED_DEVICE float* floats(const HeedView& view) { return static_cast<float*>(view.data); }

// Sums and maxima over the lanes of a warp, in every lane, in an order that is always the same.
template <class T>
HEED_DEVICE T warp_sum(T value) {
  for (int step = warp_lanes / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(whole_warp, value, step);
  }
  return value;
}
HEED_DEVICE float warp_max(float value) {
  for (int step = warp_lanes / 2; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(whole_warp, value, step));
  }
  return value;
}

// The same over a block of whole warps, in every thread; `room` is one number a warp of shared
// memory, which may be used again after the next barrier.
template <class T>
HEED_DEVICE T block_sum(T value, T* room) {
  value = warp_sum(value);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int warps = static_cast<int>(blockDim.x) / warp_lanes;
  __syncthreads();
  if (lane == 0) room[warp] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < warps; ++i) sum += room[i];
  return sum;
}
HEED_DEVICE float block_max(float value, float* room) {
  value = warp_max(value);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int warps = static_cast<int>(blockDim.x) / warp_lanes;
  __syncthreads();
  if (lane == 0) room[warp] = value;
  __syncthreads();
  float most = room[0];
  for (int i = 1; i < warps; ++i) most = fmaxf(most, room[i]);
  return most;
}

#endif  // HEED_DEVICE

}  // namespace heed_cuda
