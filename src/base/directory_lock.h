// One writer of a directory at a time.
#pragma once

#include <filesystem>

namespace heed {

// Holds a directory for one writer, until it is destroyed or its process ends however it ends.
// Others are not kept from reading. Throws Error{not_found} where there is none, Error{conflict}
// when another holds it; where the file system has no locks, nothing is held.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace heed
