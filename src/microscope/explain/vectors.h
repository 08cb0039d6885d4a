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

using PlanePoint = std::array<double, 2>;

// Projection of vectors onto their first two principal components.
struct PrincipalPlane {
  std::vector<PlanePoint> points;           // of each vector, relative to the mean
  std::array<double, 2> explained{};        // shares of the total variance
  std::vector<double> mean;                 // (C)
  std::array<std::vector<double>, 2> axes;  // (C) each, of length 1; zero where nothing varies

  // Of another vector (C), which the plane does not depend on.
  PlanePoint point_of(std::span<const float> vector) const;
};

// vectors (M, C), M at least 1. Each component's sign makes its largest coordinate positive.
PrincipalPlane principal_plane(View<const float> vectors);

// A rotation of the plane about the origin, or a reflection.
struct PlaneTurn {
  std::array<double, 4> rows = {1, 0, 0, 1};
  PlanePoint operator()(const PlanePoint& point) const {
    return {rows[0] * point[0] + rows[1] * point[1], rows[2] * point[0] + rows[3] * point[1]};
  }
};

// The one that brings `points` nearest to as many others, by the sum of squared distances
// (Schönemann, A generalized solution of the orthogonal Procrustes problem, 1966).
PlaneTurn turn_towards(std::span<const PlanePoint> points, std::span<const PlanePoint> others);

}  // namespace heed
