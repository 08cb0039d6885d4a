// Files: read by memory map, written beside and renamed.
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace heed {

// A whole file mapped read-only. Throws Error{not_found} or Error{input_output}; an empty file
// gives an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Writes `path` as a whole or not at all: bytes go to a temporary file beside it, which commit()
// flushes to the disk and renames over `path`. Without commit() the destructor removes the
// temporary file. Files that belong together are all finished before the first is committed: what
// can fail for want of room has then been done. Any number of threads and processes may write the
// same path, and the last to commit wins. Throws Error{input_output} with the system's reason
// (disk full, read-only, ...).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void finish();  // all bytes to the disk; only the renaming is left
  void commit();  // finishes first, where that has not been done

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once it is there no more
  std::FILE* file_ = nullptr;
};

// The whole file as a string. Throws as MappedFile does, and Error{corrupt_data} when the file is
// larger than `largest` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t largest = SIZE_MAX);

// AtomicFile in one call.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Removes the file, if it is there, for good. Throws Error{input_output}.
void remove_file(const std::filesystem::path& path);

// Creates the directory and its parents. Throws Error{input_output}.
void make_directory(const std::filesystem::path& path);

}  // namespace heed
