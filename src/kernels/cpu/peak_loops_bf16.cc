#include <hwy/highway.h>

#include "base/error.h"
#include "kernels/cpu/neon_instructions.h"
#include "kernels/cpu/peak_loops.h"

#if HWY_ARCH_X86_64

#include "kernels/cpu/bf16_instructions.h"

#include <cstdint>
#include <numeric>

HWY_PUSH_ATTRIBUTES(HEED_BF16_INSTRUCTIONS)

namespace heed::kernels {
double bf16_dot_product_flops() { return 16.0 * 16.0 * 4.0; }

// Sixteen chains hide the latency of the dot product: six cycles times two units is twelve.
float bf16_dot_product_loop(long iterations, float factor) {
  constexpr int chain_count = 16;
  const __m512 factors = _mm512_set1_ps(factor);
  const __m512bh pairs = _mm512_cvtne2ps_pbh(factors, factors);
  __m512 chains[chain_count];
#pragma GCC unroll 16
  for (int i = 0; i < chain_count; ++i) chains[i] = _mm512_set1_ps(static_cast<float>(i));
  for (long iteration = 0; iteration < iterations; ++iteration) {
#pragma GCC unroll 16
    for (int i = 0; i < chain_count; ++i) chains[i] = _mm512_dpbf16_ps(chains[i], pairs, pairs);
  }
  __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 16
  for (int i = 0; i < chain_count; ++i) sum = _mm512_add_ps(sum, chains[i]);
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, sum);
  return std::accumulate(lanes, lanes + 16, 0.0F);
}

// Six chains hide the latency of the tile product, 52 cycles, of which one starts every 16.
float bf16_tile_product_loop(long iterations, float factor) {
  static constexpr TileConfiguration configuration;
  alignas(64) std::uint16_t operand[16 * 32];
  alignas(64) float result[16 * 16];
  const __m512 factors = _mm512_set1_ps(factor);
  const __m512bh pairs = _mm512_cvtne2ps_pbh(factors, factors);
  for (int row = 0; row < 16; ++row) _mm512_store_si512(operand + row * 32, (__m512i)pairs);
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_loadd(6, operand, 64);
  _tile_loadd(7, operand, 64);
  for (long iteration = 0; iteration < iterations; ++iteration) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_stored(0, result, 64);
  _tile_release();
  return std::accumulate(result, result + 16 * 16, 0.0F);
}

}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#else

#if HEED_NEON_EXTENSIONS

HWY_PUSH_ATTRIBUTES(HEED_NEON_BF16)
namespace heed::kernels {
double bf16_dot_product_flops() { return 16.0 * 4.0 * 4.0; }

// Sixteen chains hide a latency of four cycles times four units.
float bf16_dot_product_loop(long iterations, float factor) {
  constexpr int chain_count = 16;
  const bfloat16x8_t pairs = vdupq_n_bf16(vcvth_bf16_f32(factor));
  float32x4_t chains[chain_count];
#pragma GCC unroll 16
  for (int i = 0; i < chain_count; ++i) chains[i] = vdupq_n_f32(static_cast<float>(i));
  for (long iteration = 0; iteration < iterations; ++iteration) {
#pragma GCC unroll 16
    for (int i = 0; i < chain_count; ++i) chains[i] = vbfdotq_f32(chains[i], pairs, pairs);
  }
  float32x4_t sum = vdupq_n_f32(0);
#pragma GCC unroll 16
  for (int i = 0; i < chain_count; ++i) sum = vaddq_f32(sum, chains[i]);
  return vaddvq_f32(sum);
}
}  // namespace heed::kernels
HWY_POP_ATTRIBUTES

#else

namespace heed::kernels {
double bf16_dot_product_flops() { return 0; }
float bf16_dot_product_loop(long, float) {
  fail(ErrorCode::unsupported, "this machine has no dot products of bf16");
}
}  // namespace heed::kernels

#endif

namespace heed::kernels {
float bf16_tile_product_loop(long, float) {
  fail(ErrorCode::unsupported, "this machine has no AMX");
}
}  // namespace heed::kernels

#endif
