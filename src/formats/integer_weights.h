// Integer matrices in files: row by row, independent of the layout that products use in memory.
//
// A matrix NAME (O, I), outputs first as in memory, is stored as two tensors. Its inputs form
// groups of 32, of which the last may be smaller:
//   NAME.int8    I8 (O, I), integers from −127 to 127
//   NAME.int4    U8 (O, ⌈I/2⌉), two inputs a byte, the first in the low half, each integer + 8;
//                where I is odd the last half is 8
//   NAME.scales  BF16 (O, ⌈I/32⌉), weight = scale · integer
// The largest magnitude of a group is 127 (7), unless all are zero. Quantising scale · integer
// again then gives the same integers, and a saved model computes what it did before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_source.h"
#include "kernels/prepared_weight.h"

namespace heed {

// Whether `format` has this layout: int8 and int4.
bool is_integer(kernels::WeightFormat format);

// The names of a matrix's two tensors.
std::string integers_name(std::string_view matrix, kernels::WeightFormat format);
std::string scales_name(std::string_view matrix);

// Appends both tensors; borrows `matrix` (O, I) until they are written.
void append_integers(std::vector<OutgoingTensor>& tensors, const std::string& name,
                     View<const float> matrix, kernels::WeightFormat format);

// The two tensors, of the right types and of the shapes that go with `matrix` (O, I). Throws
// Error{corrupt_data} where one is missing or otherwise.
struct StoredIntegers {
  const TensorEntry* integers = nullptr;
  const TensorEntry* scales = nullptr;
};
StoredIntegers find_integers(const TensorSource& source, const std::string& name,
                             const Shape& matrix, kernels::WeightFormat format);

// out (O, I) = scale · integer. Throws Error{corrupt_data} for integers and scales that the layout
// does not allow.
void read_integers(const TensorSource& source, const StoredIntegers& stored,
                   kernels::WeightFormat format, View<float> out);

}  // namespace heed
