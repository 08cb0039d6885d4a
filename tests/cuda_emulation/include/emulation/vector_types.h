// Vectors of CUDA, aligned as they are there, and dim3.
#pragma once

#define HEED_VECTOR2(name, element, alignment) \
  struct alignas(alignment) name {             \
    element x, y;                              \
  };                                           \
  __host__ __device__ inline name make_##name(element x, element y) { return {x, y}; }
#define HEED_VECTOR3(name, element) \
  struct name {                     \
    element x, y, z;                \
  };                                \
  __host__ __device__ inline name make_##name(element x, element y, element z) { return {x, y, z}; }
#define HEED_VECTOR4(name, element, alignment)                                              \
  struct alignas(alignment) name {                                                          \
    element x, y, z, w;                                                                     \
  };                                                                                        \
  __host__ __device__ inline name make_##name(element x, element y, element z, element w) { \
    return {x, y, z, w};                                                                    \
  }

HEED_VECTOR2(char2, signed char, 2)
HEED_VECTOR4(char4, signed char, 4)
HEED_VECTOR2(uchar2, unsigned char, 2)
HEED_VECTOR4(uchar4, unsigned char, 4)
HEED_VECTOR2(short2, short, 4)
HEED_VECTOR4(short4, short, 8)
HEED_VECTOR2(ushort2, unsigned short, 4)
HEED_VECTOR4(ushort4, unsigned short, 8)
HEED_VECTOR2(int2, int, 8)
HEED_VECTOR3(int3, int)
HEED_VECTOR4(int4, int, 16)
HEED_VECTOR2(uint2, unsigned, 8)
HEED_VECTOR3(uint3, unsigned)
HEED_VECTOR4(uint4, unsigned, 16)
HEED_VECTOR2(float2, float, 8)
HEED_VECTOR3(float3, float)
HEED_VECTOR4(float4, float, 16)
HEED_VECTOR2(double2, double, 16)
HEED_VECTOR2(longlong2, long long, 16)
HEED_VECTOR2(ulonglong2, unsigned long long, 16)

#undef HEED_VECTOR2
#undef HEED_VECTOR3
#undef HEED_VECTOR4

struct dim3 {
  unsigned x, y, z;
  // NOLINTNEXTLINE(google-explicit-constructor): as CUDA's own
  __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
      : x(x_), y(y_), z(z_) {}
  __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ constexpr operator uint3() const { return {x, y, z}; }
};
