#include "microscope/traces/depth_vectors.h"

#include <algorithm>

namespace heed {

Tensor<float> vectors_at(const Capture& capture, std::int64_t position) {
  const std::vector<Point>& points = capture.points();
  const std::int64_t channels = capture.at(points.front()).view().extent(2);
  Tensor<float> vectors(Shape{std::ssize(points), channels});
  for (std::int64_t row = 0; row < std::ssize(points); ++row) {
    const Tensor<float>& values = capture.at(points[static_cast<std::size_t>(row)]);
    std::ranges::copy(values.view()[0][position].span(), vectors.view()[row].span().begin());
  }
  return vectors;
}

}  // namespace heed
