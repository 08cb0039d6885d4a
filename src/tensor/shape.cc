#include "tensor/shape.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace heed {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(extents.begin(), static_cast<int>(extents.size())) {}

Shape::Shape(const std::int64_t* extents, int rank) : rank_(rank) {
  require(rank <= max_rank, ErrorCode::invalid_argument,
          "a tensor of {} dimensions; at most {} are supported", rank, max_rank);
  for (int i = 0; i < rank; ++i) {
    require(extents[i] >= 0, ErrorCode::invalid_argument, "negative extent {} in dimension {}",
            extents[i], i);
    extents_[i] = extents[i];
    require(!__builtin_mul_overflow(size_, extents[i], &size_), ErrorCode::invalid_argument,
            "a tensor whose element count does not fit in 63 bits");
  }
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string Shape::text() const { return fmt::format("({})", fmt::join(begin(), end(), ", ")); }

}  // namespace heed
