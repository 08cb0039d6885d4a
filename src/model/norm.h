// A norm of a pass, with its probe points.
#pragma once

#include "model/edited_points.h"
#include "model/stages.h"

namespace heed {

// norm.out (N, C) from x (N, C); norm.saved is filled.
void norm_forward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                  const NormPoints& points, View<const float> x, const NormOutput& norm);

// d_x (N, C), accumulated, from norm.d_out (N, C); parameter gradients accumulate.
struct NormBackward {
  View<float> d_x;
  kernels::NormGradients<float> gradients;
};
void norm_backward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                   const NormPoints& points, const NormOperands& norm,
                   const NormBackward& backward);

}  // namespace heed
