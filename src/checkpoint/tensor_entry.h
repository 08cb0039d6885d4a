// A tensor of a file, and its conversion to f32.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace heed {

// Borrows from the file object that it was found in, which must outlive it.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // shape.size() elements, little-endian, at any alignment
};

// Converts the elements of an f32, f16, bf16 or f64 tensor. `out` is contiguous and has the entry's
// shape. Throws Error{invalid_argument} for another shape, Error{unsupported} for another dtype.
void read_as_f32(const TensorEntry& entry, View<float> out);

// Converts and transposes a matrix: entry (I, O), out (O, I), for GPT-2's Conv1D weights. `out` may
// have a row stride; its rows must be contiguous.
void read_transposed_as_f32(const TensorEntry& entry, View<float> out);

}  // namespace heed
