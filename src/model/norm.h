// A norm of a pass, seen and changed at its points.
#pragma once

#include "model/edited_points.h"

namespace heed {

// norm.out (N, C) from x (N, C); norm.saved is filled.
void norm_forward(const Pass& pass, std::int64_t layer, const NormSites& sites, View<const float> x,
                  const NormOutput& norm);

}  // namespace heed
