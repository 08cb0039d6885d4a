#include "model/norm.h"

#include "tensor/tensor.h"

namespace heed {

void norm_forward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                  const NormPoints& points, View<const float> x, const NormOutput& norm) {
  Tensor<float> edited;
  const View<const float> read = norm_input(pass, layer, points, x, edited);
  normalise(stack, read, norm.parameters, norm.saved, norm.out);
  if (pass.editor != nullptr) edit_norm(pass, layer, points, read, norm);
  if (pass.probe != nullptr) observe_norm(pass, layer, points, x, norm.saved);
}

void norm_backward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                   const NormPoints& points, const NormOperands& norm,
                   const NormBackward& backward) {
  Tensor<float> edited;
  NormOperands read = norm;
  read.x = norm_input(pass, layer, points, norm.x, edited);
  observe_norm_gradients(stack, pass, layer, points, read);
  normalise_backward(stack, read.x, norm.parameters, norm.saved, norm.d_out, backward.d_x,
                     backward.gradients);
}

}  // namespace heed
