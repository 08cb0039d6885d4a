// Comparing vectors of the stream, and drawing many of them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tensor/view.h"

namespace heed {

// Comparison of two vectors of the same width.
struct VectorComparison {
  double cosine = 0;         // NaN if either is zero
  double distance = 0;       // ‖first − second‖
  double first_length = 0;   // ‖first‖
  double second_length = 0;  // ‖second‖
};

VectorComparison compare_vectors(std::span<const float> first, std::span<const float> second);

// Projection of vectors onto their first two principal components.
struct PrincipalPlane {
  std::vector<std::array<double, 2>> points;  // of each vector, relative to the mean
  std::array<double, 2> explained{};          // shares of the total variance
};

// vectors (M, C), M at least 1. Each component's sign makes its largest coordinate positive.
PrincipalPlane principal_plane(View<const float> vectors);

}  // namespace heed
