// Comparison of two vectors of the same width.
#pragma once

#include <span>

namespace heed {

struct VectorComparison {
  double cosine = 0;         // NaN if either is zero
  double distance = 0;       // ‖first − second‖
  double first_length = 0;   // ‖first‖
  double second_length = 0;  // ‖second‖
};

VectorComparison compare_vectors(std::span<const float> first, std::span<const float> second);

}  // namespace heed
