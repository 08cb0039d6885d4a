// One tensor of a file, and how its elements reach memory as f32.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace heed {

// Borrows from the file that it was found in: valid as long as that file object lives.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;  // shape.size() elements, little-endian, at any alignment
};

// Converts the elements of an f32, f16, bf16 or f64 tensor. `out` is contiguous and has the entry's
// shape. Throws Error{invalid_argument} for another shape, Error{unsupported} for another dtype.
void read_as_f32(const TensorEntry& entry, View<float> out);

// The same for a matrix stored the other way round: entry (I, O), out (O, I), as GPT-2's Conv1D
// weights need. The rows of `out` may lie apart, their elements may not.
void read_transposed_as_f32(const TensorEntry& entry, View<float> out);

}  // namespace heed
