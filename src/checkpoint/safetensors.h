// safetensors: eight bytes of header length, a JSON header, then the elements of all tensors.
// https://huggingface.co/docs/safetensors
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/files.h"
#include "checkpoint/tensor_entry.h"

namespace heed {

// The largest header that the format allows, in bytes.
inline constexpr std::size_t safetensors_largest_header = 100'000'000;

// The header's key for metadata, which is reserved: no tensor may have this name.
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

// A file whose header has been checked in full, so that entries need no further checks: known
// dtypes, bytes == shape × dtype, and ranges that cover the data without gaps or overlaps.
class SafetensorsFile {
 public:
  // Maps the file. Throws the errors of MappedFile; Error{corrupt_data} with the file, the tensor
  // and the invalid value; and Error{unsupported} for dtypes that heed does not support and for
  // more than Shape::max_rank dimensions.
  static SafetensorsFile open(const std::filesystem::path& path);

  // Parses a file in memory; the bytes must outlive the result. `source` is its name in messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string source);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }  // in the order of the data
  const TensorEntry* find(std::string_view name) const;                 // null when absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& source() const { return source_; }

 private:
  MappedFile file_;
  std::string source_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace heed
