// Projection of vectors onto their first two principal components.
#pragma once

#include <array>
#include <vector>

#include "tensor/view.h"

namespace heed {

struct PrincipalPlane {
  std::vector<std::array<double, 2>> points;  // of each vector, relative to the mean
  std::array<double, 2> explained{};          // shares of the total variance
};

// vectors (M, C), M at least 1. Each component's sign makes its largest coordinate positive.
PrincipalPlane principal_plane(View<const float> vectors);

}  // namespace heed
