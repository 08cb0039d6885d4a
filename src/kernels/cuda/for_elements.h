// Operations on elements, on the device: a struct with its constants, the numbers of its inputs and
// outputs, and a call that computes an element. All are limited by bytes.
#pragma once

#include "kernels/cuda/device_code.h"

namespace heed_cuda {

constexpr int element_threads = 256;
constexpr int element_operands = 4;  // at most, of either kind

inline bool is_aligned(const void* address) { return reinterpret_cast<size_t>(address) % 16 == 0; }

// Room for n operands, where arrays of none do not exist.
template <int n>
constexpr int room = n > 0 ? n : 1;

HEED_DEVICE void load_quad(const float* from, float (&to)[4]) {
  const float4 loaded = *reinterpret_cast<const float4*>(from);
  to[0] = loaded.x, to[1] = loaded.y, to[2] = loaded.z, to[3] = loaded.w;
}
HEED_DEVICE void store_quad(const float (&from)[4], float* to) {
  const float4 stored = make_float4(from[0], from[1], from[2], from[3]);
#ifdef __NVCC__
  __stwb(reinterpret_cast<float4*>(to), stored);  // nvcc would take some apart
#else
  *reinterpret_cast<float4*>(to) = stored;
#endif
}

// One element, or four of them, of operands at the same places.
template <class Operation>
HEED_DEVICE void compute_element(const Operation& operation, const float* const (&in)[4],
                                 float* const (&out)[4]) {
  float values[room<Operation::inputs>] = {}, results[room<Operation::outputs>];
  for (int n = 0; n < Operation::inputs; ++n) values[n] = *in[n];
  operation(values, results);
  for (int n = 0; n < Operation::outputs; ++n) *out[n] = results[n];
}
template <class Operation>
HEED_DEVICE void compute_quad(const Operation& operation, const float* const (&in)[4],
                              float* const (&out)[4]) {
  float values[room<Operation::inputs>][4] = {}, results[room<Operation::outputs>][4];
  for (int n = 0; n < Operation::inputs; ++n) load_quad(in[n], values[n]);
  for (int j = 0; j < 4; ++j) {
    float from[room<Operation::inputs>] = {}, to[room<Operation::outputs>];
    for (int n = 0; n < Operation::inputs; ++n) from[n] = values[n][j];
    operation(from, to);
    for (int n = 0; n < Operation::outputs; ++n) results[n][j] = to[n];
  }
  for (int n = 0; n < Operation::outputs; ++n) store_quad(results[n], out[n]);
}

// Operands that lie element beside element. An output may be an input.
template <class Operation>
struct Elements {
  Operation operation;
  long long count;
  const float* in[4];
  float* out[4];
  long long quads;  // of four elements that are loaded at once
};

template <class Operation>
__global__ void __launch_bounds__(element_threads)
    compute_elements(const Elements<Operation> elements) {
  const float* in[4] = {};
  float* out[4] = {};
  const auto move_to = [&](long long i) {
    for (int n = 0; n < Operation::inputs; ++n) in[n] = elements.in[n] + i;
    for (int n = 0; n < Operation::outputs; ++n) out[n] = elements.out[n] + i;
  };
  for (long long i = first_item(); i < elements.quads; i += item_step()) {
    move_to(4 * i);
    compute_quad(elements.operation, in, out);
  }
  for (long long i = 4 * elements.quads + first_item(); i < elements.count; i += item_step()) {
    move_to(i);
    compute_element(elements.operation, in, out);
  }
}

template <class Operation>
HeedCudaResult launch_elements(Elements<Operation> elements) {
  static_assert(Operation::inputs <= element_operands && Operation::outputs <= element_operands);
  bool aligned = true;
  for (int n = 0; n < Operation::inputs; ++n) aligned = aligned && is_aligned(elements.in[n]);
  for (int n = 0; n < Operation::outputs; ++n) aligned = aligned && is_aligned(elements.out[n]);
  elements.quads = aligned ? elements.count / 4 : 0;
  const long long items = elements.quads > 0 ? elements.quads : elements.count;
  return launch(compute_elements<Operation>, blocks_for(items, element_threads), element_threads, 0,
                elements);
}

// The same of operands of one shape and any strides.
template <class Operation>
struct StridedElements {
  Operation operation;
  const float* in[4];
  float* out[4];
  int rank;                              // at least 1
  long long extent[HEED_CUDA_MAX_RANK];  // the last one in groups
  long long in_stride[4][HEED_CUDA_MAX_RANK];
  long long out_stride[4][HEED_CUDA_MAX_RANK];
  long long groups;  // of one element, or of four beside each other
};

template <class Operation, int group>
__global__ void __launch_bounds__(element_threads)
    compute_strided_elements(const StridedElements<Operation> elements) {
  const int last = elements.rank - 1;
  for (long long i = first_item(); i < elements.groups; i += item_step()) {
    const float* in[4] = {};
    float* out[4] = {};
    for (int n = 0; n < Operation::inputs; ++n) in[n] = elements.in[n];
    for (int n = 0; n < Operation::outputs; ++n) out[n] = elements.out[n];
    long long rest = i;
    for (int d = HEED_CUDA_MAX_RANK - 1; d >= 0; --d) {
      if (d > last) continue;
      const long long left = rest / elements.extent[d];
      long long at = rest - left * elements.extent[d];
      if (d == last) at *= group;
      rest = left;
      for (int n = 0; n < Operation::inputs; ++n) in[n] += at * elements.in_stride[n][d];
      for (int n = 0; n < Operation::outputs; ++n) out[n] += at * elements.out_stride[n][d];
    }
    if constexpr (group == 4) {
      compute_quad(elements.operation, in, out);
    } else {
      compute_element(elements.operation, in, out);
    }
  }
}

}  // namespace heed_cuda
