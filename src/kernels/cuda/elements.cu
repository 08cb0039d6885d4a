#include "kernels/cuda/elements.h"

#include "kernels/cuda/for_elements.h"

namespace heed_cuda {
namespace {

struct Fill {
  static constexpr int inputs = 0, outputs = 1;
  float value;
  HEED_DEVICE void operator()(const float*, float* out) const { out[0] = value; }
};

struct Copy {
  static constexpr int inputs = 1, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const { out[0] = in[0]; }
};

struct Scale {
  static constexpr int inputs = 1, outputs = 1;
  float factor;
  HEED_DEVICE void operator()(const float* in, float* out) const { out[0] = factor * in[0]; }
};

// Each operation is rounded: no fused multiply-add.
struct Accumulate {  // from, to
  static constexpr int inputs = 2, outputs = 1;
  float factor;
  HEED_DEVICE void operator()(const float* in, float* out) const {
    out[0] = __fadd_rn(in[1], __fmul_rn(factor, in[0]));
  }
};

struct Subtract {
  static constexpr int inputs = 2, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const { out[0] = in[0] - in[1]; }
};

struct Reciprocal {
  static constexpr int inputs = 1, outputs = 1;
  HEED_DEVICE void operator()(const float* in, float* out) const { out[0] = 1.0F / in[0]; }
};

struct Compare {
  static constexpr int inputs = 2, outputs = 0;
  unsigned* found;
  HEED_DEVICE void operator()(const float* in, float*) const {
    if (__float_as_uint(in[0]) != __float_as_uint(in[1])) atomicOr(found, 1U);
  }
};

// Whether all rows of the last dimension may be read four numbers at a time.
bool has_quads(const HeedView& view) {
  const int last = view.rank - 1;
  bool aligned = is_aligned(view.data) && view.stride[last] == 1 && view.extent[last] % 4 == 0;
  for (int d = 0; d < last; ++d) aligned = aligned && view.stride[d] % 4 == 0;
  return aligned;
}

template <class Operation>
HeedCudaResult launch_views(const Operation& operation, const HeedView* const (&in)[2],
                            const HeedView* const (&out)[1]) {
  const HeedView& shape = Operation::outputs > 0 ? *out[0] : *in[0];
  StridedElements<Operation> strided{};
  strided.operation = operation;
  strided.rank = shape.rank;
  strided.groups = 1;
  bool dense = shape.rank == 1, quads = true;
  for (int n = 0; n < Operation::inputs; ++n) {
    strided.in[n] = static_cast<const float*>(in[n]->data);
    dense = dense && in[n]->stride[0] == 1;
    quads = quads && has_quads(*in[n]);
  }
  for (int n = 0; n < Operation::outputs; ++n) {
    strided.out[n] = static_cast<float*>(out[n]->data);
    dense = dense && out[n]->stride[0] == 1;
    quads = quads && has_quads(*out[n]);
  }
  if (dense) {
    Elements<Operation> elements{};
    elements.operation = operation;
    elements.count = shape.extent[0];
    for (int n = 0; n < 4; ++n) elements.in[n] = strided.in[n], elements.out[n] = strided.out[n];
    return launch_elements(elements);
  }
  for (int d = 0; d < shape.rank; ++d) {
    strided.extent[d] = quads && d == shape.rank - 1 ? shape.extent[d] / 4 : shape.extent[d];
    strided.groups *= strided.extent[d];
    for (int n = 0; n < Operation::inputs; ++n) strided.in_stride[n][d] = in[n]->stride[d];
    for (int n = 0; n < Operation::outputs; ++n) strided.out_stride[n][d] = out[n]->stride[d];
  }
  const dim3 grid = blocks_for(strided.groups, element_threads);
  if (quads) {
    return launch(compute_strided_elements<Operation, 4>, grid, element_threads, 0, strided);
  }
  return launch(compute_strided_elements<Operation, 1>, grid, element_threads, 0, strided);
}

// Matrices that are read along their columns and written along their rows, by tiles, so that both
// are of whole sectors.
struct Transposition {
  const float* from;
  float* to;
  long long rows, columns;  // to (rows, columns): columns lie beside each other, in `from` rows do
  long long from_stride;    // of columns
  long long to_stride;      // of rows
  int rank;                 // of the other dimensions
  long long extent[HEED_CUDA_MAX_RANK];
  long long from_outer[HEED_CUDA_MAX_RANK];
  long long to_outer[HEED_CUDA_MAX_RANK];
  long long row_tiles, column_tiles, tiles;
};
constexpr int tile = 32;
constexpr int tile_steps = 8;  // rows that a block handles at once

__global__ void __launch_bounds__(tile* tile_steps) transpose(const Transposition operands) {
  __shared__ float values[tile][tile + 1];  // one more: no two lanes of a column share a bank
  const int lane = static_cast<int>(threadIdx.x) % tile;
  const int step = static_cast<int>(threadIdx.x) / tile;
  for (long long i = blockIdx.x; i < operands.tiles; i += gridDim.x) {
    long long rest = i / operands.column_tiles;
    const long long first_column = (i - rest * operands.column_tiles) * tile;
    long long outer = rest / operands.row_tiles;
    const long long first_row = (rest - outer * operands.row_tiles) * tile;
    const float* from = operands.from;
    float* to = operands.to;
    for (int d = HEED_CUDA_MAX_RANK - 1; d >= 0; --d) {
      if (d >= operands.rank) continue;
      rest = outer / operands.extent[d];
      const long long at = outer - rest * operands.extent[d];
      from += at * operands.from_outer[d];
      to += at * operands.to_outer[d];
      outer = rest;
    }
    for (int y = step; y < tile; y += tile_steps) {
      const long long row = first_row + lane, column = first_column + y;
      if (row < operands.rows && column < operands.columns) {
        values[y][lane] = from[column * operands.from_stride + row];
      }
    }
    __syncthreads();
    for (int y = step; y < tile; y += tile_steps) {
      const long long row = first_row + y, column = first_column + lane;
      if (row < operands.rows && column < operands.columns) {
        to[row * operands.to_stride + column] = values[lane][y];
      }
    }
    __syncthreads();
  }
}

// The dimension that lies closest in `from`, where that is another one than in `to`; −1: none.
int transposed_dimension(const HeedView& from, const HeedView& to) {
  const int last = to.rank - 1;
  if (to.stride[last] != 1 || from.stride[last] == 1 || to.extent[last] < 4) return -1;
  for (int d = 0; d < last; ++d) {
    if (from.stride[d] == 1 && from.extent[d] >= 4) return d;
  }
  return -1;
}

HeedCudaResult launch_transposition(const HeedView& from, const HeedView& to, int transposed) {
  const int last = to.rank - 1;
  Transposition operands{};
  operands.from = static_cast<const float*>(from.data);
  operands.to = static_cast<float*>(to.data);
  operands.rows = to.extent[transposed];
  operands.columns = to.extent[last];
  operands.from_stride = from.stride[last];
  operands.to_stride = to.stride[transposed];
  operands.row_tiles = (operands.rows + tile - 1) / tile;
  operands.column_tiles = (operands.columns + tile - 1) / tile;
  operands.tiles = operands.row_tiles * operands.column_tiles;
  for (int d = 0; d < last; ++d) {
    if (d == transposed) continue;
    operands.extent[operands.rank] = to.extent[d];
    operands.from_outer[operands.rank] = from.stride[d];
    operands.to_outer[operands.rank] = to.stride[d];
    operands.tiles *= to.extent[d];
    ++operands.rank;
  }
  return launch(transpose, blocks_for(operands.tiles, 1), tile * tile_steps, 0, operands);
}

__global__ void __launch_bounds__(element_threads) copy_each_byte(const HeedByteCopy operands) {
  long long bytes = 1;
  for (int d = 0; d < operands.to.rank; ++d) bytes *= operands.to.extent[d];
  for (long long i = first_item(); i < bytes; i += item_step()) {
    static_cast<char*>(operands.to.data)[offset_of(operands.to, i)] =
        static_cast<const char*>(operands.from.data)[offset_of(operands.from, i)];
  }
}

// The same bytes as floats, where they come in fours. Nothing is computed with them.
bool as_floats(const HeedView& bytes, HeedView& floats) {
  const int last = bytes.rank - 1;
  floats = bytes;
  bool whole = bytes.stride[last] == 1 && bytes.extent[last] % 4 == 0 &&
               reinterpret_cast<size_t>(bytes.data) % 4 == 0;
  floats.extent[last] /= 4;
  for (int d = 0; d < last; ++d) {
    whole = whole && bytes.stride[d] % 4 == 0;
    floats.stride[d] /= 4;
  }
  return whole;
}

}  // namespace
}  // namespace heed_cuda

extern "C" {

HeedCudaResult heed_cuda_fill(const HeedElementOperands* operands) {
  return heed_cuda::launch_views(heed_cuda::Fill{operands->number}, {}, {&operands->out});
}

HeedCudaResult heed_cuda_copy(const HeedElementOperands* operands) {
  const int transposed = heed_cuda::transposed_dimension(operands->x, operands->out);
  if (transposed >= 0) {
    return heed_cuda::launch_transposition(operands->x, operands->out, transposed);
  }
  return heed_cuda::launch_views(heed_cuda::Copy{}, {&operands->x}, {&operands->out});
}

HeedCudaResult heed_cuda_copy_strided_bytes(const HeedByteCopy* operands) {
  using namespace heed_cuda;
  HeedElementOperands floats{};
  if (as_floats(operands->from, floats.x) && as_floats(operands->to, floats.out)) {
    return heed_cuda_copy(&floats);
  }
  long long bytes = 1;
  for (int d = 0; d < operands->to.rank; ++d) bytes *= operands->to.extent[d];
  return launch(copy_each_byte, blocks_for(bytes, element_threads), element_threads, 0, *operands);
}

HeedCudaResult heed_cuda_scale(const HeedElementOperands* operands) {
  return heed_cuda::launch_views(heed_cuda::Scale{operands->number}, {&operands->out},
                                 {&operands->out});
}

HeedCudaResult heed_cuda_accumulate(const HeedElementOperands* operands) {
  return heed_cuda::launch_views(heed_cuda::Accumulate{operands->number},
                                 {&operands->x, &operands->out}, {&operands->out});
}

HeedCudaResult heed_cuda_subtract(const HeedElementOperands* operands) {
  return heed_cuda::launch_views(heed_cuda::Subtract{}, {&operands->x, &operands->y},
                                 {&operands->out});
}

HeedCudaResult heed_cuda_reciprocal(const HeedElementOperands* operands) {
  return heed_cuda::launch_views(heed_cuda::Reciprocal{}, {&operands->x}, {&operands->out});
}

HeedCudaResult heed_cuda_find_different_bits(const HeedElementOperands* operands) {
  return heed_cuda::launch_views(heed_cuda::Compare{operands->found}, {&operands->x, &operands->y},
                                 {});
}

}  // extern "C"
