#include "model/norm.h"

#include "kernels/kernels.h"

namespace heed {

void norm_forward(const Pass& pass, std::int64_t layer, const NormSites& sites, View<const float> x,
                  const NormOutput& norm) {
  kernels::layer_norm_forward(x, norm.parameters, norm.out, norm.saved);
  if (pass.editor != nullptr) edit_norm(pass, layer, sites, x, norm);
  if (pass.probe != nullptr) observe_norm(pass, layer, sites, x, norm.saved);
}

}  // namespace heed
