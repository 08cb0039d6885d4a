// safetensors: eight bytes of header length, a JSON header, then the elements of all tensors.
// https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file_parts.h"
#include "base/files.h"
#include "checkpoint/weight_blocks.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace heed {

// A tensor of a file, and its conversion to f32.

// Borrows from the file object that it was found in, which must outlive it.
struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  // shape.size() elements, little-endian, at any alignment; empty where they are read from `file`.
  std::span<const std::byte> bytes;
  // Of a GGUF file: `bytes` are blocks of this type, whose rows are whole blocks, and `dtype`, f32,
  // is the type of the numbers that they stand for.
  std::optional<BlockType> blocks{};
  std::optional<FileParts> file{};  // of elements, or blocks
  std::size_t begin = 0;            // in the file

  std::size_t size_in_bytes() const;  // in the file
};

// The bytes of an entry, read for the call where they are not in memory.
FilePart bytes_of(const TensorEntry& entry);

// Converts the elements of an f32, f16, bf16 or f64 tensor, or unpacks blocks. `out` is contiguous
// and has the entry's shape. Throws Error{invalid_argument} for another shape, Error{unsupported}
// for another dtype.
void read_as_f32(const TensorEntry& entry, View<float> out);

// Converts and transposes a matrix: entry (I, O), out (O, I), for GPT-2's Conv1D weights. `out` may
// have a row stride; its rows must be contiguous.
void read_transposed_as_f32(const TensorEntry& entry, View<float> out);

// The largest header that the format allows, in bytes.
inline constexpr std::size_t safetensors_max_header = 100'000'000;

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

  // The same, for files that may be larger than what is free in memory: without maps, tensors are
  // read one by one, each time that they are asked for (bytes_of).
  static SafetensorsFile open_in_parts(const std::filesystem::path& path);

  // Parses a file in memory; the bytes must outlive the result. `source` is its name in messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string source);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }  // in the order of the data
  const TensorEntry* find(std::string_view name) const;                 // null when absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& source() const { return source_; }

 private:
  // Of a file of `size` bytes; the tensors have neither bytes nor a file yet.
  static SafetensorsFile parse_header(std::string_view text, std::uint64_t size,
                                      std::string source);

  MappedFile file_;
  std::string source_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
  std::map<std::string, std::string> metadata_;
};

// Writes safetensors files atomically, without a second copy of the tensors.

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
