#include "heed/array.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace heed {
namespace {

std::size_t element_count(const std::vector<std::int64_t>& shape) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / sizeof(float);
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    require(extent >= 0, ErrorCode::invalid_argument,
            "an extent of an array must be 0 or more, not {}", extent);
    require(extent == 0 || count <= most / extent, ErrorCode::invalid_argument,
            "an array of this shape has more elements than memory has addresses");
    count *= extent;
  }
  return static_cast<std::size_t>(count);
}

std::shared_ptr<float[]> taken(std::vector<float> values) {
  const auto owner = std::make_shared<std::vector<float>>(std::move(values));
  return {owner, owner->data()};
}

}  // namespace

Array::Array(std::vector<float> values)
    : shape_{std::ssize(values)}, size_(values.size()), owner_(taken(std::move(values))) {}

Array::Array(std::vector<std::int64_t> shape, std::vector<float> values)
    : shape_(std::move(shape)), size_(element_count(shape_)) {
  require(size_ == values.size(), ErrorCode::invalid_argument,
          "an array of {} elements cannot be made of {}", size_, values.size());
  owner_ = taken(std::move(values));
}

Array::Array(std::vector<std::int64_t> shape, std::shared_ptr<float[]> owner)
    : shape_(std::move(shape)), size_(element_count(shape_)), owner_(std::move(owner)) {
  require(owner_ != nullptr || size_ == 0, ErrorCode::invalid_argument,
          "an array of {} elements needs memory", size_);
}

Array Array::reshaped(std::vector<std::int64_t> shape) const {
  const std::size_t size = element_count(shape);
  require(size == size_, ErrorCode::invalid_argument,
          "an array of {} elements cannot become one of {}", size_, size);
  return {std::move(shape), owner_};
}

void Array::assign(std::size_t count, float value) {
  *this = Array(std::vector<float>(count, value));
}

bool operator==(const Array& a, const Array& b) {
  return a.shape_ == b.shape_ && std::ranges::equal(a, b);
}

}  // namespace heed
