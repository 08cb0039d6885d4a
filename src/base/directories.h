// Where heed keeps what can be made or downloaded again, and what cannot; and one writer of a
// directory at a time.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace heed {

// HEED_CACHE/`kind`, or else heed/`kind` in XDG_CACHE_HOME or in .cache of HOME. Relative values of
// the latter two are ignored, as the XDG specification requires; empty where none of the three
// names a directory.
std::filesystem::path cache_directory(std::string_view kind);

// The directory of what cannot be made again: heed/`kind` in XDG_DATA_HOME or in .local/share of
// HOME; empty where neither names a directory.
std::filesystem::path data_directory(std::string_view kind);

// An empty cache_directory() in an error message.
inline constexpr std::string_view no_cache_directory =
    "none of HEED_CACHE, XDG_CACHE_HOME and HOME names a directory";

// Holds a directory for one writer, until the object is destroyed or its process ends. Readers are
// not affected. Throws Error{not_found} if there is no such directory, Error{conflict} if another
// writer holds it; on file systems without locks, it does nothing.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

// Returns whether a writer holds the directory; nothing if the file system cannot tell.
std::optional<bool> is_locked(const std::filesystem::path& directory);

}  // namespace heed
