// A download that is not finished: PATH.partial, and PATH.partial.json, which says of what.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/content_hash.h"

namespace heed {

std::filesystem::path partial_path(const std::filesystem::path& path);

// Both files stay when the object is destroyed, so that a later one continues. The directory is
// locked by the caller.
class PartialFile {
 public:
  // Opens what an earlier download of the same content left, or begins an empty file. `size` and
  // `hash` are those of the whole. Throws Error{input_output}.
  PartialFile(const std::filesystem::path& path, std::int64_t size, const ContentHash& hash);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::filesystem::path& path() const { return path_; }  // PATH.partial
  std::int64_t size() const { return size_; }                  // bytes that are there
  // Names the version on the server, for If-Range; empty where the server gave none that says that
  // bytes are the same.
  const std::string& etag() const { return etag_; }

  void restart(const std::string& etag);  // begins again, with the bytes of this version
  void append(std::string_view bytes);
  void sync();    // flushes all bytes to disk
  void remove();  // both files; then restart() begins again

 private:
  void open();
  void close();
  bool read_record();
  void write_record() const;

  std::filesystem::path path_;
  std::filesystem::path record_;
  ContentHash hash_;
  std::string etag_;
  std::int64_t size_ = 0;
  int descriptor_ = -1;
};

// Renames PATH.partial to PATH and removes its record. Throws Error{input_output}.
void keep_partial_file(const std::filesystem::path& path);

}  // namespace heed
