// bf16 of CUDA: conversions to and from float, rounded to nearest even.
#pragma once

#include "cuda_runtime.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};

namespace heed::emulation {

__host__ __device__ inline float bf16_value(unsigned short bits) {
  return __builtin_bit_cast(float, static_cast<unsigned>(bits) << 16);
}
// NVIDIA's conversion gives 0x7fff for each value that is not a number.
__host__ __device__ inline unsigned short bf16_bits(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace heed::emulation

struct alignas(2) __nv_bfloat16 {
  __nv_bfloat16() = default;
  // NOLINTBEGIN(google-explicit-constructor): as CUDA's own
  __host__ __device__ __nv_bfloat16(float value) : bits_(heed::emulation::bf16_bits(value)) {}
  __host__ __device__ constexpr __nv_bfloat16(__nv_bfloat16_raw raw) : bits_(raw.x) {}
  __host__ __device__ operator float() const { return heed::emulation::bf16_value(bits_); }
  __host__ __device__ operator __nv_bfloat16_raw() const { return {bits_}; }
  // NOLINTEND(google-explicit-constructor)

 private:
  unsigned short bits_;
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

__host__ __device__ inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {value}; }
__host__ __device__ inline __nv_bfloat16 __float2bfloat16(float value) { return {value}; }
__host__ __device__ inline float __bfloat162float(__nv_bfloat16 value) {
  return static_cast<float>(value);
}
__host__ __device__ inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
__host__ __device__ inline float2 __bfloat1622float2(__nv_bfloat162 values) {
  return {static_cast<float>(values.x), static_cast<float>(values.y)};
}
__host__ __device__ inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return {x, y};
}
__host__ __device__ inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return static_cast<__nv_bfloat16_raw>(value).x;
}
__host__ __device__ inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return {__nv_bfloat16_raw{bits}};
}
