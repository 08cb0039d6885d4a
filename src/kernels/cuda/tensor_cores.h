// Products of bf16 by tensor cores. A warp multiplies matrices of which each lane holds a part, as
// PTX's documentation lays them out: sums of a 16 x 8 tile are those of rows lane / 4 and
// lane / 4 + 8, columns 2 (lane % 4) and the next.
#pragma once

#include "kernels/cuda/device_code.h"

namespace heed_cuda {

// Two numbers, rounded to the nearest bf16.
HEED_DEVICE unsigned bf16_pair(float low, float high) {
#ifdef HEED_CUDA_EMULATION
  const auto bits = [](float value) {
    const unsigned all = __float_as_uint(value);
    const bool is_number = (all & 0x7FFFFFFFU) <= 0x7F800000U;
    return (is_number ? all + 0x7FFFU + ((all >> 16) & 1U) : all | 0x400000U) >> 16;
  };
  return bits(low) | bits(high) << 16;
#else
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}

// 2^x to 22 bits: enough for what is rounded to bf16.
HEED_DEVICE float rough_exp2(float x) {
#ifdef HEED_CUDA_EMULATION
  return exp2f(x);
#else
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#endif
}

// sum (16 x 8) += a (16 x 16) * b (16 x 8)
HEED_DEVICE void multiply_fragments(float (&sum)[4], const unsigned (&a)[4], unsigned b0,
                                    unsigned b1) {
#ifdef HEED_CUDA_EMULATION
  const unsigned b[2] = {b0, b1};
  heed::emulation::mma_m16n8k16_bf16(sum, a, b, sum);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

// The four 8 x 8 matrices of a 16 x 16 tile in shared memory, row by row or column by column, each
// transposed or not. Rows start at multiples of 16 bytes.
enum class MatrixOrder { rows, columns };

template <bool transposed, MatrixOrder order>
HEED_DEVICE void load_matrices(unsigned (&to)[4], const unsigned short* tile, int pitch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
#ifdef HEED_CUDA_EMULATION
  for (int matrix = 0; matrix < 4; ++matrix) {
    const bool by_rows = order == MatrixOrder::rows;
    const unsigned short* const corner = tile + (by_rows ? matrix / 2 : matrix % 2) * 8 * pitch +
                                         (by_rows ? matrix % 2 : matrix / 2) * 8;
    const int row = transposed ? lane % 4 * 2 : lane / 4;
    const int column = transposed ? lane / 4 : lane % 4 * 2;
    const unsigned short* const first = corner + row * pitch + column;
    to[matrix] = *first | static_cast<unsigned>(first[transposed ? pitch : 1]) << 16;
  }
#else
  const int matrix = lane / 8;
  constexpr bool by_rows = order == MatrixOrder::rows;
  const unsigned short* const row = tile +
                                    ((by_rows ? matrix / 2 : matrix % 2) * 8 + lane % 8) * pitch +
                                    (by_rows ? matrix % 2 : matrix / 2) * 8;
  unsigned address;
  asm("{ .reg .u64 shared; cvta.to.shared.u64 shared, %1; cvt.u32.u64 %0, shared; }"
      : "=r"(address)
      : "l"(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address));
  }
#endif
}

// An operand a (16 x 16) from [row][k].
HEED_DEVICE void load_a(unsigned (&a)[4], const unsigned short* tile, int pitch) {
  load_matrices<false, MatrixOrder::columns>(a, tile, pitch);
}
// Two operands b (16 x 8), side by side, from [column][k] or from [k][column]: b[0] and b[1] are of
// the first.
HEED_DEVICE void load_b_of_rows(unsigned (&b)[4], const unsigned short* tile, int pitch) {
  load_matrices<false, MatrixOrder::rows>(b, tile, pitch);
}
HEED_DEVICE void load_b(unsigned (&b)[4], const unsigned short* tile, int pitch) {
  load_matrices<true, MatrixOrder::columns>(b, tile, pitch);
}

}  // namespace heed_cuda
