// Writing safetensors: as a whole or not at all, without a second copy of the tensors.
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

// Takes the next bytes of a tensor.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// A tensor on its way into a file.
struct OutgoingTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;                                   // as the file states it
  std::function<void(const ByteSink&)> produce;  // hands over all bytes, in order, in pieces
};

// Borrows contiguous elements; they must stay until the file is written. T is float, double or an
// integer of a DType's width; named at the call for what is not a view of const elements:
// outgoing<float>("wte.weight", tensor).
template <class T>
OutgoingTensor outgoing(std::string name, View<const T> elements);

// A matrix (O, I) that the file is to hold as (I, O), as GPT-2's Conv1D weights are; transposed
// block by block while it is written.
OutgoingTensor outgoing_transposed(std::string name, View<const float> matrix);

// Writes the tensors in the given order through AtomicFile, so that an existing file stays as it
// was unless everything went well. Elements are aligned in the file to their size as long as
// tensors of larger elements come first. Throws Error{invalid_argument} for an empty, reserved or
// repeated name, Error{input_output} with the system's reason.
void write_safetensors(const std::filesystem::path& path, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

// The same into a file that the caller commits, with others that belong to it.
void write_safetensors(AtomicFile& file, std::span<const OutgoingTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace heed
