// The matrix product of a warp.
#include "cuda_bf16.h"
#include "cuda_runtime.h"

namespace heed::emulation {
namespace {

struct Fragments {
  float* d;
  const unsigned* a;
  const unsigned* b;
  const float* c;
};

// bf16 number i of a fragment: two in each register, the lower half first.
float bf16_of(const unsigned* registers, int i) {
  return bf16_value(static_cast<unsigned short>(registers[i / 2] >> (i % 2 * 16)));
}

// The places of a lane's elements, from PTX's documentation. A lane is group·4 + member.
void multiply_fragments(const WarpOperands& operands) {
  float a[16][16], b[16][8], sums[16][8];
  const auto lane_of = [&](int lane) -> const Fragments& {
    if (operands[lane] == nullptr) undefined_behaviour("a lane is missing from mma");
    return *static_cast<const Fragments*>(operands[lane]);
  };
  for (int lane = 0; lane < 32; ++lane) {
    const Fragments& fragments = lane_of(lane);
    const int group = lane / 4, member = lane % 4;
    for (int i = 0; i < 8; ++i) {
      const int row = group + (i / 2 % 2 == 0 ? 0 : 8);
      a[row][member * 2 + i % 2 + (i < 4 ? 0 : 8)] = bf16_of(fragments.a, i);
    }
    for (int i = 0; i < 4; ++i) {
      b[member * 2 + i % 2 + (i < 2 ? 0 : 8)][group] = bf16_of(fragments.b, i);
      sums[group + (i < 2 ? 0 : 8)][member * 2 + i % 2] = fragments.c[i];
    }
  }
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) sums[row][column] += a[row][k] * b[k][column];
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      lane_of(lane).d[i] = sums[lane / 4 + (i < 2 ? 0 : 8)][lane % 4 * 2 + i % 2];
    }
  }
}

}  // namespace

void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                       const float (&c)[4]) {
  Fragments fragments{d, a, b, c};
  warp_operation(0xffffffffU, multiply_fragments, &fragments);
}

}  // namespace heed::emulation
