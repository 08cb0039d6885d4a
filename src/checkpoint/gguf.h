// GGUF, the file format of ggml: a header with metadata of any keys, then tensors in blocks.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file_parts.h"
#include "base/files.h"
#include "checkpoint/weight_blocks.h"
#include "tensor/shape.h"

namespace heed {

// The values are those of the format.
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};

std::string_view gguf_type_name(GgufType type);  // "u8", "string", …

// A value of the metadata, which has been checked to lie in the file. Borrows from the file.
class GgufValue {
 public:
  // The elements of an array have `element`'s type; any other value is one of its own type.
  GgufValue(GgufType type, GgufType element, std::uint64_t count, std::span<const std::byte> bytes)
      : type_(type), element_(element), count_(count), bytes_(bytes) {}

  bool is_array() const { return type_ == GgufType::array; }
  GgufType element() const { return element_; }   // of an array, else its own type
  std::uint64_t count() const { return count_; }  // of an array, else 1

  // Throw Error{invalid_argument} for a value of another type; an integer that does not fit into 64
  // bits with a sign is refused alike.
  std::int64_t integer() const;
  double number() const;  // an integer, too
  bool boolean() const;
  std::string_view text() const;
  std::vector<std::int64_t> integers() const;
  std::vector<double> numbers() const;
  std::vector<std::string_view> texts() const;

  // At most `most` elements as a reader writes them: 12, 'gpt2', [1, 2, … of 50,257].
  std::string shown(std::size_t most) const;

 private:
  std::int64_t integer_at(std::uint64_t index) const;
  double number_at(std::uint64_t index) const;
  void require_scalar(std::string_view wanted) const;
  void require_array(std::string_view wanted) const;
  std::string described() const;

  GgufType type_;
  GgufType element_;
  std::uint64_t count_;
  std::span<const std::byte> bytes_;  // of the elements, without the array's own header
};

// A tensor of a file. Borrows from it.
struct GgufTensor {
  std::string name;
  BlockType type = BlockType::f32;
  Shape shape;  // outermost first: the file lists the extents the other way round
  std::span<const std::byte> bytes;  // empty where they are read from `file`
  std::optional<FileParts> file{};
  std::size_t begin = 0;  // in the file
  std::size_t size = 0;   // in bytes
};

struct GgufEntry {
  std::string key;
  GgufValue value;
};

// A file of version 2 or 3 whose header has been checked in full: entries need no further checks.
class GgufFile {
 public:
  // Maps the file. Throws the errors of MappedFile, Error{corrupt_data} with the file, the key or
  // tensor and the invalid value, and Error{unsupported} for big-endian files, version 1, types of
  // weights that heed does not read, and nested arrays.
  static GgufFile open(const std::filesystem::path& path);

  // The same, for files that may be larger than what is free in memory: without maps, the header is
  // read, and tensors one by one, each time that they are asked for (bytes_of). There, a header of
  // more than 256 MB is unsupported.
  static GgufFile open_in_parts(const std::filesystem::path& path);

  // Parses a file in memory; the bytes must outlive the result. `source` is its name in messages.
  static GgufFile parse(std::span<const std::byte> bytes, std::string source);

  std::uint32_t version() const { return version_; }
  std::size_t alignment() const { return alignment_; }
  const std::vector<GgufEntry>& metadata() const { return metadata_; }  // in the file's order
  const GgufValue* find_value(std::string_view key) const;              // null when absent
  const std::vector<GgufTensor>& tensors() const { return tensors_; }   // in the file's order
  const GgufTensor* find(std::string_view name) const;                  // null when absent
  const std::string& source() const { return source_; }
  // MappedFile::identity(); empty for a file in memory, and one that is read in parts.
  const std::string& identity() const { return file_.identity(); }
  // MappedFile::release_pages() of bytes of a tensor; nothing for a file in memory.
  void release_pages(std::span<const std::byte> part) const;
  void release_pages() const { release_pages(file_.bytes()); }

 private:
  friend class GgufReader;

  MappedFile file_;
  FilePart beginning_{std::span<const std::byte>()};  // or this, with the header
  std::string source_;
  std::uint32_t version_ = 0;
  std::size_t alignment_ = 0;
  std::vector<GgufEntry> metadata_;
  std::unordered_map<std::string, std::size_t> keys_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
};

// Opens a file, or all parts of one that was split ("NAME-00001-of-00003.gguf", from whichever part
// `path` names), in order. Throws what GgufFile::open_in_parts does, Error{not_found} for a missing
// part, Error{corrupt_data} for parts that contradict each other.
std::vector<GgufFile> open_gguf_parts(const std::filesystem::path& path);

}  // namespace heed
