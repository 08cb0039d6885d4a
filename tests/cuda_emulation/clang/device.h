// What NVIDIA's headers give device code, for Clang's CUDA mode without them: from Clang's own
// headers as far as these have it. Functions of libdevice (__nv_*) are declared only; nothing
// is linked. Included before anything else (see ptx.sh).
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

#define CUDA_VERSION 12000  // read by Clang's headers

// Device code's overloads must be declared before host code's.
#include <__clang_cuda_math_forward_declares.h>
//
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "emulation/vector_types.h"
//
#include <__clang_cuda_builtin_vars.h>

#define HEED_INDEX(name)                                                                    \
  __device__ inline __cuda_builtin_##name##_t::operator uint3() const { return {x, y, z}; } \
  __device__ inline __cuda_builtin_##name##_t::operator dim3() const { return dim3(x, y, z); }
HEED_INDEX(threadIdx)
HEED_INDEX(blockIdx)
HEED_INDEX(blockDim)
HEED_INDEX(gridDim)
#undef HEED_INDEX

using cuuint32_t = unsigned;  // of NVIDIA's cuda.h

// In this order.
// clang-format off
#include <__clang_cuda_libdevice_declares.h>
#include <__clang_cuda_device_functions.h>
#include <__clang_cuda_math.h>
#include <__clang_cuda_cmath.h>
#include <__clang_cuda_intrinsics.h>
// clang-format on

// --- What Clang's headers lack ---

__device__ inline int atomicAdd(int* address, int value) { return __iAtomicAdd(address, value); }
__device__ inline unsigned atomicAdd(unsigned* address, unsigned value) {
  return __uAtomicAdd(address, value);
}
__device__ inline unsigned long long atomicAdd(unsigned long long* address,
                                               unsigned long long value) {
  return __ullAtomicAdd(address, value);
}
__device__ inline float atomicAdd(float* address, float value) {
  return __fAtomicAdd(address, value);
}
__device__ inline double atomicAdd(double* address, double value) {
  return __dAtomicAdd(address, value);
}
__device__ inline int atomicSub(int* address, int value) { return __iAtomicAdd(address, -value); }
__device__ inline unsigned atomicSub(unsigned* address, unsigned value) {
  return __uAtomicAdd(address, 0U - value);
}
__device__ inline float atomicExch(float* address, float value) {
  return __fAtomicExch(address, value);
}
#define HEED_ATOMICS(type, prefix)                                            \
  __device__ inline type atomicExch(type* address, type value) {              \
    return __##prefix##AtomicExch(address, value);                            \
  }                                                                           \
  __device__ inline type atomicMax(type* address, type value) {               \
    return __##prefix##AtomicMax(address, value);                             \
  }                                                                           \
  __device__ inline type atomicMin(type* address, type value) {               \
    return __##prefix##AtomicMin(address, value);                             \
  }                                                                           \
  __device__ inline type atomicAnd(type* address, type value) {               \
    return __##prefix##AtomicAnd(address, value);                             \
  }                                                                           \
  __device__ inline type atomicOr(type* address, type value) {                \
    return __##prefix##AtomicOr(address, value);                              \
  }                                                                           \
  __device__ inline type atomicXor(type* address, type value) {               \
    return __##prefix##AtomicXor(address, value);                             \
  }                                                                           \
  __device__ inline type atomicCAS(type* address, type compare, type value) { \
    return __##prefix##AtomicCAS(address, compare, value);                    \
  }
HEED_ATOMICS(int, i)
HEED_ATOMICS(unsigned, u)
HEED_ATOMICS(unsigned long long, ull)
#undef HEED_ATOMICS

// Hints for caches, which change no result.
template <class T>
__device__ T __ldcg(const T* address) {
  return *address;
}
template <class T>
__device__ T __ldcs(const T* address) {
  return *address;
}
template <class T>
__device__ void __stcs(T* address, T value) {
  *address = value;
}

__device__ inline int __dp4a(int a, int b, int sum) {
  int result;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
