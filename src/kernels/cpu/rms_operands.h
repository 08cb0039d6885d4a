// Operands of root mean square normalisation, as its vectorised loops see them.
#pragma once

#include "kernels/cpu/strided_heads.h"
#include "kernels/operands.h"

namespace heed::kernels {

// Rows (N, C), each as one head, or heads (N, H, C).
struct RmsOperands {
  StridedHeads<const float> x;
  std::int64_t heads;
  std::int64_t channels;
  const NormParameters<float>& parameters;
};

struct RmsGradients {
  StridedHeads<float> x;
  bool accumulate;  // into x
  float* gain;      // accumulates
};

inline RmsOperands rms_operands(const View<const float>& x,
                                const NormParameters<float>& parameters) {
  const int last = x.rank() - 1;
  return {.x = StridedHeads<const float>(x),
          .heads = last == 2 ? x.extent(1) : 1,
          .channels = x.extent(last),
          .parameters = parameters};
}

}  // namespace heed::kernels
