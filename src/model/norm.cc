#include "model/norm.h"

#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace heed {

void norm_forward(const Pass& pass, std::int64_t layer, const NormPoints& points,
                  View<const float> x, const NormOutput& norm) {
  Tensor<float> edited;
  const View<const float> read = norm_input(pass, layer, points, x, edited);
  kernels::layer_norm_forward(read, norm.parameters, norm.out, norm.saved);
  if (pass.editor != nullptr) edit_norm(pass, layer, points, read, norm);
  if (pass.probe != nullptr) observe_norm(pass, layer, points, x, norm.saved);
}

void norm_backward(const Pass& pass, std::int64_t layer, const NormPoints& points,
                   const NormOperands& norm, const NormBackward& backward) {
  Tensor<float> edited;
  NormOperands read = norm;
  read.x = norm_input(pass, layer, points, norm.x, edited);
  observe_norm_gradients(pass, layer, points, read);
  kernels::layer_norm_backward(read.x, norm.parameters, norm.saved, norm.d_out, backward.d_x,
                               backward.gradients);
}

}  // namespace heed
