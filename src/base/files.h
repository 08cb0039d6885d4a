// Files: read by memory map or by position, written to a temporary file and renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// A regular file, read by position: safe while another process appends to it or truncates it.
// Throws Error{not_found}, Error{input_output}, or Error{invalid_argument} for what is not a
// regular file: pipes and devices are refused without waiting for them.
class RegularFile {
 public:
  explicit RegularFile(const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t size() const;  // at the time of the call
  // Reads from byte `begin` on; returns the number of bytes read, fewer than asked at the end.
  std::size_t read(std::int64_t begin, std::span<char> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// A whole file mapped read-only. Throws as RegularFile does; an empty file gives an empty span.
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

// Writes `path` as a whole or not at all: bytes go to a temporary file in the same directory, which
// commit() flushes to the disk and renames over `path`. Without commit() the destructor removes the
// temporary file. A killed process leaves it, unlocked; the next writer of `path` removes it. Files
// that belong together are all finished before the first is committed, so that a full disk is
// noticed in time. Any number of threads and processes may write the same path, and the last to
// commit wins. Throws Error{input_output} with the system's reason (disk full, read-only, ...).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void finish();  // flushes all bytes to the disk; only the rename is left
  void commit();  // finishes first if that has not been done

 private:
  void release();

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once it is renamed or removed
  std::FILE* file_ = nullptr;
  int lock_ = -1;  // holds the temporary file locked from its creation to its rename
};

// Removes the temporary files that killed processes left in the directory. Those of running
// processes are locked and stay. For directories that only heed writes to; never throws.
void remove_abandoned_files(const std::filesystem::path& directory);

// The whole file as a string. Throws as RegularFile does, and Error{corrupt_data} when the file is
// larger than `largest` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t largest = SIZE_MAX);

// AtomicFile in one call.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Removes the file if it exists, durably. Throws Error{input_output}.
void remove_file(const std::filesystem::path& path);

// Creates the directory and its parents. Throws Error{input_output}.
void make_directory(const std::filesystem::path& path);

// A directory made, with its parents, for output that may still fail: unless keep() is called, the
// destructor removes those directories that it created, as far as they are empty. Throws
// Error{input_output}.
class OutputDirectory {
 public:
  explicit OutputDirectory(const std::filesystem::path& path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  void keep() { created_.clear(); }

 private:
  std::vector<std::filesystem::path> created_;  // innermost first
};

}  // namespace heed
