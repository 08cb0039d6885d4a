// Reads files through a memory map or by position; writes them to a temporary file that is then
// renamed.
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

// A regular file that is read by position, which is safe while another process appends to it or
// truncates it. Throws Error{not_found}, Error{input_output}, or Error{invalid_argument} if the
// path is not a regular file; pipes and devices are rejected without blocking.
class RegularFile {
 public:
  explicit RegularFile(const std::filesystem::path& path);
  ~RegularFile();
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t size() const;  // at the time of the call
  // Of its content: device, number, size and time of change, at the time of the call.
  std::string identity() const;
  // Reads from byte `begin`; returns the number of bytes read, which is smaller at the end of the
  // file.
  std::size_t read(std::int64_t begin, std::span<char> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Maps a whole file read-only. Throws the errors of RegularFile; an empty file gives an empty span.
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
  // RegularFile::identity() when it was mapped; empty in a browser.
  const std::string& identity() const { return identity_; }
  // Takes pages of the file, with `part` of bytes(), from the memory of this process: they are read
  // again where they are used again.
  void release_pages(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string identity_;
};

// Writes `path` atomically: bytes go to a temporary file in the same directory, which commit()
// flushes to the disk and renames over `path`. Without commit() the destructor removes the
// temporary file, as remove_unfinished() does. A killed process leaves it behind, unlocked; the
// next writer of `path` removes it. To replace several files together, finish() all of them before
// the first commit(), so that a full disk is detected before any file is replaced. Any number of
// threads and processes may write the same path, and the last to commit wins. Throws
// Error{input_output} with the system's reason (disk full, read-only, ...).
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void finish();  // flushes all bytes to disk; only the rename remains
  void commit();  // calls finish() first if necessary

 private:
  void release();

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once it is renamed or removed
  std::FILE* file_ = nullptr;
  int lock_ = -1;  // locks the temporary file from its creation to its rename
};

// Removes temporary files that killed processes left in the directory; those of running processes
// are locked and are kept. Use it only for directories that only heed writes to. Never throws.
void remove_abandoned_files(const std::filesystem::path& directory);

// Returns the whole file as a string. Throws the errors of RegularFile, and Error{corrupt_data} if
// the file is larger than `largest` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t largest = SIZE_MAX);

// Writes a file through AtomicFile.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Removes the file if it exists and flushes its directory to disk. Throws Error{input_output}.
void remove_file(const std::filesystem::path& path);

// Creates the directory and its parents. Throws Error{input_output}.
void make_directory(const std::filesystem::path& path);

// Creates a directory and its parents for output that may still fail: unless keep() is called, the
// destructor, or remove_unfinished(), removes the directories that it created if they are empty.
// Throws Error{input_output}.
class OutputDirectory {
 public:
  explicit OutputDirectory(const std::filesystem::path& path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  void keep();

 private:
  std::vector<std::filesystem::path> created_;  // innermost first
};

// The whole content of a file that gzip compressed, of all members. Throws the errors of
// RegularFile, and Error{corrupt_data} for a file that is no gzip file, is damaged or ends early,
// or whose content is larger than `largest` bytes.
std::string read_gzip_file(const std::filesystem::path& path, std::size_t largest = SIZE_MAX);

// Files and directories that a process which a signal ends removes first.
//
// Notes a path that remove_unfinished() removes, borrowed until it is forgotten: before it exists,
// since a signal may come at any time. Paths beyond a fixed number are not noted. Never throws.
void note_unfinished(const char* path) noexcept;
// The path exists now. Where the process is ending, removes it again and waits for the end.
void created_unfinished(const char* path) noexcept;
// The path is complete, or was removed.
void forget_unfinished(const char* path) noexcept;

// Removes noted files and, if they are empty then, noted directories: a signal handler may call it.
// The process must end afterwards.
void remove_unfinished() noexcept;

// Throws "cannot ACTION 'PATH': REASON" as Error{not_found} or Error{input_output}.
[[noreturn]] void fail_with_errno(const char* action, const std::filesystem::path& path,
                                  int error_number);

// Flushes a rename in `directory` to disk, so that it survives a power failure, if the file system
// supports it.
void sync_directory(const std::filesystem::path& directory);

}  // namespace heed
