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

// The header's key for metadata, which no tensor may have.
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

// A file whose header has been checked in full, so that every entry can be used without another
// look: known dtypes, bytes == shape × dtype, ranges that lie in the file and tile it without gap
// or overlap.
class SafetensorsFile {
 public:
  // Maps the file. Throws what MappedFile throws; Error{corrupt_data} with the file, the tensor and
  // the value that is wrong; Error{unsupported} for dtypes of the format that heed does not have
  // and for more than Shape::max_rank dimensions.
  static SafetensorsFile open(const std::filesystem::path& path);

  // The same for bytes in memory, which must outlive the result. `source` names them in messages.
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
