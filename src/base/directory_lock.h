// One writer of a directory at a time.
#pragma once

#include <filesystem>
#include <optional>

namespace heed {

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
