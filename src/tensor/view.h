// View<T>: borrowed elements with a shape and strides. A view never owns and never allocates.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "tensor/device.h"
#include "tensor/shape.h"

namespace heed {

template <class T>
class View {
 public:
  using Strides = std::array<std::int64_t, Shape::max_rank>;

  View() = default;

  // Contiguous, the last dimension fastest.
  View(T* data, const Shape& shape) : data_(data), shape_(shape) {
    std::int64_t stride = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      strides_[i] = stride;
      stride *= shape[i];
    }
  }

  View(T* data, const Shape& shape, const Strides& strides)
      : data_(data), shape_(shape), strides_(strides) {}

  // View<float> converts to View<const float>.
  operator View<const T>() const requires(!std::is_const_v<T>) { return {data_, shape_, strides_}; }

  // An absent optional operand is a default-constructed view.
  bool present() const { return data_ != nullptr; }

  T* data() const { return data_; }
  // Where the elements are: only those of the processor are reached by indices.
  Device device() const { return device_of(data_); }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t extent(int dimension) const { return shape_[dimension]; }
  std::int64_t stride(int dimension) const { return strides_[dimension]; }
  const Strides& strides() const { return strides_; }
  std::int64_t size() const { return shape_.size(); }

  bool contiguous() const {
    std::int64_t expected = 1;
    for (int i = shape_.rank() - 1; i >= 0; --i) {
      if (shape_[i] != 1 && strides_[i] != expected) return false;
      expected *= shape_[i];
    }
    return true;
  }

  // All elements of a contiguous view.
  std::span<T> span() const {
    check(contiguous(), "span() of a contiguous view");
    return {data_, static_cast<std::size_t>(size())};
  }

  template <class... Index>
  T& operator()(Index... index) const {
    std::int64_t offset = 0;
    int dimension = 0;
    ((offset += static_cast<std::int64_t>(index) * strides_[dimension++]), ...);
    return data_[offset];
  }

  // Fixes the first index: (A, B, C)[i] is (B, C).
  View operator[](std::int64_t index) const {
    Strides strides{};
    for (int i = 1; i < rank(); ++i) strides[i - 1] = strides_[i];
    return {data_ + index * strides_[0], Shape(shape_.begin() + 1, rank() - 1), strides};
  }

  // Indices [begin, end) of one dimension.
  View slice(int dimension, std::int64_t begin, std::int64_t end) const {
    check(0 <= begin && begin <= end && end <= shape_[dimension], "slice inside the dimension");
    std::array<std::int64_t, Shape::max_rank> extents{};
    for (int i = 0; i < rank(); ++i) extents[i] = shape_[i];
    extents[dimension] = end - begin;
    return {data_ + begin * strides_[dimension], Shape(extents.data(), rank()), strides_};
  }

  // The same elements of a contiguous view under another shape of the same size.
  View reshape(const Shape& shape) const {
    check(contiguous() && shape.size() == size(), "reshape of a contiguous view to the same size");
    return {data_, shape};
  }

  // Splits the last dimension, which must be outer·inner long and dense: (..., outer·inner) becomes
  // (..., outer, inner), keeping the strides of the rest. So (B, T, H·D) is seen as (B, T, H, D).
  View split_last(std::int64_t outer, std::int64_t inner) const {
    const int last = rank() - 1;
    check(shape_[last] == outer * inner && strides_[last] == 1, "split of a dense last dimension");
    std::array<std::int64_t, Shape::max_rank> extents{};
    for (int i = 0; i < last; ++i) extents[i] = shape_[i];
    extents[last] = outer;
    extents[last + 1] = inner;
    Strides strides = strides_;
    strides[last] = inner;
    strides[last + 1] = 1;
    return {data_, Shape(extents.data(), rank() + 1), strides};
  }

 private:
  T* data_ = nullptr;
  Shape shape_{};
  Strides strides_{};
};

// Throws Error{invalid_argument} "NAME has shape (…), expected (…)" unless the shapes are equal.
template <class T>
void require_shape(const View<T>& view, const Shape& expected, std::string_view name) {
  require(view.shape() == expected, ErrorCode::invalid_argument, "{} has shape {}, expected {}",
          name, view.shape(), expected);
}

}  // namespace heed
