#include "microscope/explain/vector_comparison.h"

#include <cmath>
#include <cstddef>

#include "base/error.h"

namespace heed {

VectorComparison compare_vectors(std::span<const float> first, std::span<const float> second) {
  check(first.size() == second.size(), "the vectors have the same width");
  double product = 0, first_square = 0, second_square = 0, distance = 0;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const double a = first[c], b = second[c];
    product += a * b;
    first_square += a * a;
    second_square += b * b;
    distance += (a - b) * (a - b);
  }
  return {.cosine = product / std::sqrt(first_square * second_square),
          .distance = std::sqrt(distance),
          .first_length = std::sqrt(first_square),
          .second_length = std::sqrt(second_square)};
}

}  // namespace heed
