// Writes safetensors files atomically, without a second copy of the tensors.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace heed {

// Receives the next bytes of a tensor.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// A tensor to be written.
struct OutgoingTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // in the file
  std::function<void(const ByteSink&)>
      produce;  // passes all bytes to the sink, in order, in chunks
};

// Borrows contiguous elements, which must remain valid until the file is written. T is float,
// double or an integer of a DType's width; give it explicitly unless the argument is a view of
// const elements: outgoing<float>("weight", tensor).
template <class T>
OutgoingTensor outgoing(std::string name, View<const T> elements);

// Writes a matrix (O, I) as (I, O), the layout of GPT-2's Conv1D weights; it is transposed block by
// block.
OutgoingTensor outgoing_transposed(std::string name, View<const float> matrix);

// Writes the tensors in the given order through AtomicFile, so that an existing file is replaced
// only on success. Elements are aligned to their size in the file if tensors with larger elements
// come first. Throws Error{invalid_argument} for an empty, reserved or repeated name,
// Error{input_output} with the system's reason.
void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// Writes to a file that the caller commits, for example together with other files.
void write_safetensors(AtomicFile& file, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace heed
