// PyTorch's checkpoints (pytorch_model.bin): a ZIP archive with a pickle that describes tensors,
// and the bytes of each storage as a file of its own, uncompressed. The pickle is read as data: a
// few instructions that make dictionaries, tuples and tensors are known, and nothing is ever
// called.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace heed {

class TorchFile {
 public:
  // Maps the file. Throws the errors of MappedFile, Error{corrupt_data} with what is wrong and
  // where, and Error{unsupported} naming an instruction, a class or function, or a type of numbers
  // that is none of a state dictionary's, a compressed archive, and a tensor whose elements do not
  // lie in the order of its shape.
  static TorchFile open(const std::filesystem::path& path);

  // Parses a file in memory; the bytes must outlive the result. `source` is its name in messages.
  static TorchFile parse(std::span<const std::byte> bytes, std::string source);

  // In the order of the dictionary; those of one storage share its bytes.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const std::string& source() const { return source_; }

 private:
  MappedFile file_;
  std::string source_;
  std::vector<TensorEntry> tensors_;
};

}  // namespace heed
