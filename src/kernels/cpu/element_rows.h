// Loops over the elements of views of one shape and any strides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/threads.h"
#include "tensor/view.h"

namespace heed::kernels {

// The least number of elements for a second thread: a few microseconds of work.
inline constexpr std::int64_t element_grain = 16384;

// Elements of a view that lie `stride` apart.
template <class T>
struct ElementRow {
  T* data;
  std::int64_t stride;
};

// op(element of each row) for `count` elements.
template <class Op, class... T>
void for_each_in_row(std::int64_t count, const Op& op, ElementRow<T>... rows) {
  if (((rows.stride == 1) && ...)) {
    for (std::int64_t i = 0; i < count; ++i) op(rows.data[i]...);
  } else {
    for (std::int64_t i = 0; i < count; ++i) op(rows.data[i * rows.stride]...);
  }
}

// Views of one shape as few dimensions as their strides allow.
template <class... T>
class ElementRows {
 public:
  explicit ElementRows(const View<T>&... views) : first_{views.data()...} {
    const Shape& shape = std::get<0>(std::tie(views...)).shape();
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) continue;
      const Dimension next{shape[i], {views.stride(i)...}};
      if (count_ > 0 && continues(dimensions_[last()], next)) {
        dimensions_[last()] = {dimensions_[last()].extent * next.extent, next.strides};
      } else {
        dimensions_[static_cast<std::size_t>(count_++)] = next;
      }
    }
    if (count_ == 0) {
      dimensions_[0].extent = 1;
      dimensions_[0].strides.fill(1);
      count_ = 1;
    }
    for (std::size_t i = 0; i < last(); ++i) rows_ *= dimensions_[i].extent;
  }

  // body(count, ElementRow of each view) for all rows, in several threads.
  template <class Body>
  void for_each(const Body& body) const {
    const std::int64_t length = dimensions_[last()].extent;
    if (length == 0 || rows_ == 0) return;
    if (rows_ == 1) {  // whole cache lines to each thread, where elements are dense
      parallel_ranges((length + 15) / 16, element_grain / 16,
                      [&](std::int64_t begin, std::int64_t end) {
                        call(body, 0, begin * 16, std::min(end * 16, length));
                      });
      return;
    }
    parallel_ranges(rows_, element_grain / length + 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) call(body, row, 0, length);
    });
  }

  // The same in order, as long as body returns true; whether it always did.
  template <class Body>
  bool all_of(const Body& body) const {
    const std::int64_t length = dimensions_[last()].extent;
    for (std::int64_t row = 0; length > 0 && row < rows_; ++row) {
      if (!call(body, row, 0, length)) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t view_count = sizeof...(T);
  struct Dimension {
    std::int64_t extent = 1;
    std::array<std::int64_t, view_count> strides{};
  };

  static bool continues(const Dimension& outer, const Dimension& inner) {
    for (std::size_t n = 0; n < view_count; ++n) {
      if (outer.strides[n] != inner.extent * inner.strides[n]) return false;
    }
    return true;
  }
  std::size_t last() const { return static_cast<std::size_t>(count_ - 1); }

  template <class Body>
  auto call(const Body& body, std::int64_t row, std::int64_t begin, std::int64_t end) const {
    std::array<std::int64_t, view_count> offsets{};
    for (std::size_t n = 0; n < view_count; ++n)
      offsets[n] = begin * dimensions_[last()].strides[n];
    for (std::size_t i = last(); i-- > 0;) {
      const std::int64_t at = row % dimensions_[i].extent;
      row /= dimensions_[i].extent;
      for (std::size_t n = 0; n < view_count; ++n) offsets[n] += at * dimensions_[i].strides[n];
    }
    return [&]<std::size_t... N>(std::index_sequence<N...>) {
      return body(end - begin, ElementRow<T>{std::get<N>(first_) + offsets[N],
                                             dimensions_[last()].strides[N]}...);
    }
    (std::index_sequence_for<T...>());
  }

  std::tuple<T*...> first_;
  std::array<Dimension, Shape::max_rank> dimensions_{};
  int count_ = 0;
  std::int64_t rows_ = 1;  // of the last dimension
};

// op(element of each view) for all elements, in several threads.
template <class Op, class... T>
void for_each_element(const Op& op, const View<T>&... views) {
  ElementRows<T...>(views...).for_each(
      [&](std::int64_t count, ElementRow<T>... rows) { for_each_in_row(count, op, rows...); });
}

}  // namespace heed::kernels
