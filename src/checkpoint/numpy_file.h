// NumPy's archives of arrays (.npz), as numpy.savez writes them: NumPy Enhancement Proposal 1.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace heed {

// An archive whose headers have been checked in full: entries are arrays of f16, f32 or f64 or of
// integers, little-endian, in C order, whose bytes are there. Nothing of it is run.
class NumpyFile {
 public:
  // Maps the file. Throws the errors of MappedFile; Error{corrupt_data} with the array and the
  // invalid value; and Error{unsupported} for compressed archives, other types and orders.
  static NumpyFile open(const std::filesystem::path& path);

  // Of bytes that must outlive the result. `source` is its name in messages.
  static NumpyFile parse(std::span<const std::byte> bytes, std::string source);

  // Named without ".npy".
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const std::string& source() const { return source_; }

 private:
  MappedFile file_;
  std::string source_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace heed
