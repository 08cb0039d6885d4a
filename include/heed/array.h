// Arrays of numbers: what traces, attention, logits and embeddings are returned as.
//
//   heed::Array logits = model.all_logits(tokens);  // shape (T, V)
//   float first = logits[0];                        // elements row by row
//   std::shared_ptr<float[]> memory = logits.owner();  // keeps the elements alive, without a copy
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/error.h"

namespace heed {

// A dense array of 32-bit floats, row by row, the last dimension fastest. Copies share their
// elements, so that returning, keeping and wrapping an array (in NumPy, for example) copies
// nothing; assign() and the assignment of another array leave the old elements to other copies.
class Array {
 public:
  using value_type = float;
  using reference = float&;
  using const_reference = const float&;
  using iterator = float*;
  using const_iterator = const float*;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;

  static constexpr std::string_view dtype = "f32";

  Array() = default;  // shape (0)
  // Both take over the vector's memory. The first has the shape (size); the second throws
  // Error{invalid_argument} for a shape with another number of elements.
  Array(std::vector<float> values);
  Array(std::vector<std::int64_t> shape, std::vector<float> values);
  // Shares memory of as many elements as the shape has. Throws Error{invalid_argument} for a
  // negative extent.
  Array(std::vector<std::int64_t> shape, std::shared_ptr<float[]> owner);

  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::shared_ptr<float[]>& owner() const { return owner_; }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  float* data() { return owner_.get(); }
  const float* data() const { return owner_.get(); }
  float* begin() { return data(); }
  float* end() { return data() + size_; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size_; }

  // Arguments are not checked; front() and back() need an element.
  float& operator[](std::size_t index) { return data()[index]; }
  const float& operator[](std::size_t index) const { return data()[index]; }
  const float& front() const { return data()[0]; }
  const float& back() const { return data()[size_ - 1]; }

  // The same elements in another shape. Throws Error{invalid_argument} for another number of them.
  Array reshaped(std::vector<std::int64_t> shape) const;

  // Becomes an array (count) of new elements.
  void assign(std::size_t count, float value);

  // A copy of the elements.
  std::vector<float> vector() const { return {begin(), end()}; }
  operator std::vector<float>() const { return vector(); }

  // Whether shapes and elements are equal.
  friend bool operator==(const Array& a, const Array& b);

 private:
  std::vector<std::int64_t> shape_{0};
  std::size_t size_ = 0;
  std::shared_ptr<float[]> owner_;
};

}  // namespace heed
