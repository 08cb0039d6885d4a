#include "base/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace heed {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    const int error_number = errno;
    fail(error_number == ENOENT ? ErrorCode::not_found : ErrorCode::input_output,
         "cannot open the directory '{}': {}", directory.string(), std::strerror(error_number));
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    fail(ErrorCode::conflict, "'{}' is being written by another process: wait until it has ended",
         directory.string());
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

}  // namespace heed
