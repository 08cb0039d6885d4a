// Threads that share a row, on the device, and the columns that each of them has.
#pragma once

#include "kernels/cuda/for_elements.h"

namespace heed_cuda {

// A warp, of which a block has several, each with a row of its own; or a whole block.
template <int threads>
struct RowThreads {
  static constexpr int rows_per_block = threads == warp_lanes ? 4 : 1;
  static constexpr int block = threads * rows_per_block;

  static dim3 grid(long long rows) {
    return blocks_for((rows + rows_per_block - 1) / rows_per_block, 1);
  }

  HEED_DEVICE static long long row() {
    return static_cast<long long>(blockIdx.x) * rows_per_block +
           static_cast<int>(threadIdx.x) / threads;
  }
  HEED_DEVICE static int thread() { return static_cast<int>(threadIdx.x) % threads; }

  // Over the threads of the row, in each of them, in an order that is always the same.
  template <class T>
  HEED_DEVICE static T sum(T value) {
    if constexpr (threads == warp_lanes) {
      return warp_sum(value);
    } else {
      __shared__ T sums[threads / warp_lanes];
      return block_sum(value, sums);
    }
  }
  HEED_DEVICE static float max(float value) {
    if constexpr (threads == warp_lanes) {
      return warp_max(value);
    } else {
      __shared__ float most[threads / warp_lanes];
      return block_max(value, most);
    }
  }
};

// The columns of a row, in groups of four beside each other. With `groups` of a thread at most,
// which are known when the kernel is compiled, what is loaded stays in registers: rows are then
// aligned and of whole groups. With 0 they are of any length, and read again where they are needed.
template <int threads, int groups>
struct Columns {
  long long count;

  // body(group of this thread, first column, columns of the group)
  template <class Body>
  HEED_DEVICE void for_each(const Body& body) const {
    if constexpr (groups > 0) {
      for (int k = 0; k < groups; ++k) {
        const long long column = 4LL * (k * threads + RowThreads<threads>::thread());
        if (column < count) body(k, column, 4);
      }
    } else {
      for (long long column = 4LL * RowThreads<threads>::thread(); column < count;
           column += 4LL * threads) {
        body(0, column, count - column < 4 ? static_cast<int>(count - column) : 4);
      }
    }
  }

  // Of a group; beyond the row 0.
  HEED_DEVICE static void load(const float* from, int size, float (&to)[4]) {
    if constexpr (groups > 0) {
      load_quad(from, to);
    } else {
      for (int j = 0; j < 4; ++j) to[j] = j < size ? from[j] : 0.0F;
    }
  }
  HEED_DEVICE static void store(const float (&from)[4], int size, float* to) {
    if constexpr (groups > 0) {
      store_quad(from, to);
    } else {
      for (int j = 0; j < 4; ++j) {
        if (j < size) to[j] = from[j];
      }
    }
  }
};

// A row that is read.
template <int threads, int groups>
struct RowValues {
  const float* data;
  float loaded[room<groups>][4];

  HEED_DEVICE RowValues(const float* row, const Columns<threads, groups>& columns) : data(row) {
    if constexpr (groups > 0) {
      columns.for_each(
          [this](int k, long long column, int) { load_quad(data + column, loaded[k]); });
    }
  }

  HEED_DEVICE void get(int k, long long column, int size, float (&to)[4]) const {
    if constexpr (groups > 0) {
      for (int j = 0; j < 4; ++j) to[j] = loaded[k][j];
    } else {
      Columns<threads, groups>::load(data + column, size, to);
    }
  }
};

template <int threads_, int groups_>
struct RowDivision {
  static constexpr int threads = threads_, groups = groups_;
};

// Whether the rows of all operands begin where four numbers may be read at once.
enum class RowAlignment { quads, none };

// call(RowDivision) with what suits rows of so many columns.
template <class Call>
HeedCudaResult with_row_division(long long columns, RowAlignment alignment, const Call& call) {
  if (alignment == RowAlignment::none || columns % 4 != 0 || columns > 16384)
    return call(RowDivision<256, 0>());
  if (columns <= 128) return call(RowDivision<warp_lanes, 1>());
  if (columns <= 256) return call(RowDivision<warp_lanes, 2>());
  if (columns <= 512) return call(RowDivision<warp_lanes, 4>());
  if (columns <= 1024) return call(RowDivision<warp_lanes, 8>());
  if (columns <= 2048) return call(RowDivision<256, 2>());
  if (columns <= 4096) return call(RowDivision<256, 4>());
  if (columns <= 8192) return call(RowDivision<512, 4>());
  return call(RowDivision<1024, 4>());
}

}  // namespace heed_cuda
