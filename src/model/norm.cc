#include "model/norm.h"

#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace heed {

void norm_forward(const Pass& pass, std::int64_t layer, const NormSites& sites, View<const float> x,
                  const NormOutput& norm) {
  Tensor<float> edited;
  const View<const float> read = norm_input(pass, layer, sites, x, edited);
  kernels::layer_norm_forward(read, norm.parameters, norm.out, norm.saved);
  if (pass.editor != nullptr) edit_norm(pass, layer, sites, read, norm);
  if (pass.probe != nullptr) observe_norm(pass, layer, sites, x, norm.saved);
}

void norm_backward(const Pass& pass, std::int64_t layer, const NormSites& sites,
                   const NormOperands& norm, const NormBackward& backward) {
  Tensor<float> edited;
  NormOperands read = norm;
  read.x = norm_input(pass, layer, sites, norm.x, edited);
  observe_norm_gradients(pass, layer, sites, read);
  kernels::layer_norm_backward(read.x, norm.parameters, norm.saved, norm.d_out, backward.d_x,
                               backward.gradients);
}

}  // namespace heed
