// Views of the same elements in other shapes.
#pragma once

#include <array>
#include <cstdint>

#include "base/error.h"
#include "tensor/view.h"

namespace heed {

// Index `index` of a dimension, which goes: (A, B, C) of dimension 1 is (A, C).
template <class T>
View<T> select(const View<T>& view, int dimension, std::int64_t index) {
  const View<T> one = view.slice(dimension, index, index + 1);
  std::array<std::int64_t, Shape::max_rank> extents{};
  typename View<T>::Strides strides{};
  int rank = 0;
  for (int i = 0; i < one.rank(); ++i) {
    if (i == dimension) continue;
    extents[rank] = one.extent(i);
    strides[rank++] = one.stride(i);
  }
  return {one.data(), Shape(extents.data(), rank), strides};
}

// (A, B) -> (B, A)
template <class T>
View<T> transposed(const View<T>& view) {
  return {view.data(), {view.extent(1), view.extent(0)}, {view.stride(1), view.stride(0)}};
}

// Columns first, first + 2, … of (N, C).
template <class T>
View<T> every_second_column(const View<T>& rows, std::int64_t first) {
  const View<T> from_first = rows.slice(1, first, rows.extent(1));
  return {from_first.data(),
          {rows.extent(0), (from_first.extent(1) + 1) / 2},
          {rows.stride(0), 2 * rows.stride(1)}};
}

// Columns [first, first + heads·D) of rows (N, W) as (N, heads, D).
template <class T>
View<T> head_columns(const View<T>& rows, std::int64_t first, std::int64_t heads,
                     std::int64_t size) {
  return rows.slice(1, first, first + heads * size).split_last(heads, size);
}

// The same as (batch, positions, heads, D), where the rows are of `batch` sequences.
template <class T>
View<T> heads_of_sequences(const View<T>& rows, std::int64_t first, std::int64_t heads,
                           std::int64_t size, std::int64_t batch) {
  const View<T> columns = head_columns(rows, first, heads, size);
  const std::int64_t positions = rows.extent(0) / batch;
  check(positions * batch == rows.extent(0), "rows of sequences of one length");
  return {columns.data(),
          {batch, positions, heads, size},
          {positions * columns.stride(0), columns.stride(0), columns.stride(1), columns.stride(2)}};
}

// (1, …) as (repeats, …), with a stride of 0.
template <class T>
View<T> repeated(const View<T>& one, std::int64_t repeats) {
  check(one.extent(0) == 1, "one to be repeated");
  std::array<std::int64_t, Shape::max_rank> extents{};
  for (int i = 0; i < one.rank(); ++i) extents[i] = one.extent(i);
  extents[0] = repeats;
  typename View<T>::Strides strides = one.strides();
  strides[0] = 0;
  return {one.data(), Shape(extents.data(), one.rank()), strides};
}

}  // namespace heed
