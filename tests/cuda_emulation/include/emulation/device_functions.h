// Functions of device code: exchanges of a warp, atomics, mathematics, conversions, and the
// matrix product of a warp.
#pragma once

#include <math.h>  // <cmath> in the global namespace, as CUDA has it

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulation/threads.h"

// --- Exchanges of a warp ---

namespace heed::emulation {

// What a lane brings to a shuffle and takes from it.
struct Shuffle {
  std::uint64_t value;
  unsigned source;  // the lane whose value is the result
  std::uint64_t result;
};
// All bits are set in a result whose source takes no part: a not-a-number.
void shuffle(unsigned mask, Shuffle& shuffle);

template <class T>
T shuffle_from(unsigned mask, T value, unsigned source) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4 && sizeof(T) <= 8);
  Shuffle exchange{0, source, 0};
  std::memcpy(&exchange.value, &value, sizeof(T));
  shuffle(mask, exchange);
  std::memcpy(&value, &exchange.result, sizeof(T));
  return value;
}

// The first and last lane of the caller's segment of `width` lanes, a power of two.
inline unsigned segment_begin(int width) { return lane() & ~(static_cast<unsigned>(width) - 1); }
inline unsigned segment_last(int width) { return lane() | (static_cast<unsigned>(width) - 1); }

// The lanes of `mask` where the predicate is not zero.
unsigned ballot(unsigned mask, bool predicate);
void sync_warp(unsigned mask);

}  // namespace heed::emulation

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const unsigned in_segment = static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1);
  return heed::emulation::shuffle_from(mask, value,
                                       heed::emulation::segment_begin(width) | in_segment);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const unsigned lane = heed::emulation::lane();
  const bool inside = delta <= lane - heed::emulation::segment_begin(width);
  return heed::emulation::shuffle_from(mask, value, inside ? lane - delta : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const unsigned lane = heed::emulation::lane();
  const bool inside = delta <= heed::emulation::segment_last(width) - lane;
  return heed::emulation::shuffle_from(mask, value, inside ? lane + delta : lane);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  const unsigned lane = heed::emulation::lane();
  const unsigned source = lane ^ static_cast<unsigned>(lane_mask);
  const bool inside = source <= heed::emulation::segment_last(width);
  return heed::emulation::shuffle_from(mask, value, inside ? source : lane);
}

inline void __syncwarp(unsigned mask = 0xffffffffU) { heed::emulation::sync_warp(mask); }
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return heed::emulation::ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}
// Threads run one at a time, each until it waits, so that only the caller is known to be active;
// code must not rely on more.
inline unsigned __activemask() { return 1U << heed::emulation::lane(); }

// --- Memory ---

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Atomics: no other thread runs until the caller waits. Each returns the old value.
#define HEED_ATOMIC(name, type, expression)     \
  inline type name(type* address, type value) { \
    const type old = *address;                  \
    *address = expression;                      \
    return old;                                 \
  }
#define HEED_ATOMICS(type)                                         \
  HEED_ATOMIC(atomicAdd, type, old + value)                        \
  HEED_ATOMIC(atomicExch, type, value)                             \
  HEED_ATOMIC(atomicMax, type, old < value ? value : old)          \
  HEED_ATOMIC(atomicMin, type, value < old ? value : old)          \
  HEED_ATOMIC(atomicAnd, type, old& value)                         \
  HEED_ATOMIC(atomicOr, type, old | value)                         \
  HEED_ATOMIC(atomicXor, type, old ^ value)                        \
  inline type atomicCAS(type* address, type compare, type value) { \
    const type old = *address;                                     \
    if (old == compare) *address = value;                          \
    return old;                                                    \
  }
HEED_ATOMICS(int)
HEED_ATOMICS(unsigned)
HEED_ATOMICS(unsigned long long)
HEED_ATOMIC(atomicAdd, float, old + value)
HEED_ATOMIC(atomicAdd, double, old + value)
HEED_ATOMIC(atomicExch, float, value)
HEED_ATOMIC(atomicSub, int, old - value)
HEED_ATOMIC(atomicSub, unsigned, old - value)
#undef HEED_ATOMICS
#undef HEED_ATOMIC

// --- Mathematics: what <cmath> lacks in the global namespace ---

// Of the same type, as CUDA's overloads; of floats, the other one if one is not a number.
#define HEED_MIN_MAX(type)                                  \
  inline type min(type a, type b) { return b < a ? b : a; } \
  inline type max(type a, type b) { return a < b ? b : a; }
HEED_MIN_MAX(int)
HEED_MIN_MAX(unsigned)
HEED_MIN_MAX(long)
HEED_MIN_MAX(unsigned long)
HEED_MIN_MAX(long long)
HEED_MIN_MAX(unsigned long long)
#undef HEED_MIN_MAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.0F, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return std::fmin(std::fmax(x, 0.0F), 1.0F); }
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(3.14159265358979323846 * x));
  *cosine = static_cast<float>(std::cos(3.14159265358979323846 * x));
}

// Rounded to nearest, and never contracted to a fused multiply-add.
inline float __fmul_rn(float x, float y) {
  volatile float product = x * y;
  return product;
}
inline float __fadd_rn(float x, float y) {
  volatile float sum = x + y;
  return sum;
}
inline float __fsub_rn(float x, float y) { return __fadd_rn(x, -y); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(double{x})); }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline double __dmul_rn(double x, double y) {
  volatile double product = x * y;
  return product;
}
inline double __dadd_rn(double x, double y) {
  volatile double sum = x + y;
  return sum;
}

// --- Bits ---

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((std::uint64_t{x} * y) >> 32);
}
inline int __mulhi(int x, int y) { return static_cast<int>((std::int64_t{x} * y) >> 32); }
inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }

// sum + Σ a[i]·b[i] over the four bytes of each.
inline int __dp4a(int a, int b, int sum) {
  for (int shift = 0; shift < 32; shift += 8) {
    sum += static_cast<std::int8_t>(a >> shift) * static_cast<std::int8_t>(b >> shift);
  }
  return sum;
}

// --- The matrix product of a warp ---

namespace heed::emulation {

// As mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: d = a·b + c, of a (16, 16), b (16, 8),
// c and d (16, 8), of which each of the 32 lanes holds a part, as PTX's documentation lays them
// out. Products of bf16 are exact in f32; each element is summed from c on in the order of k.
void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       const float (&c)[4]);

}  // namespace heed::emulation
