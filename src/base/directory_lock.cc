#include "base/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/system_files.h"

namespace heed {
namespace {

int open_directory(const std::filesystem::path& directory) {
  return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// is_locked() in another process holds the lock for some microseconds; retry, because it is not a
// writer.
bool is_held_by_another(int descriptor) {
  constexpr int attempts = 20;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::filesystem::path& directory)
    : descriptor_(open_directory(directory)) {
  if (descriptor_ < 0) fail_with_errno("open the directory", directory, errno);
  if (is_held_by_another(descriptor_)) {
    ::close(descriptor_);
    fail(ErrorCode::conflict, "'{}' is being written by another process: wait until it has ended",
         directory.string());
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

std::optional<bool> is_locked(const std::filesystem::path& directory) {
  const int descriptor = open_directory(directory);
  if (descriptor < 0) return std::nullopt;
  const bool taken = ::flock(descriptor, LOCK_SH | LOCK_NB) == 0;
  const bool is_held = !taken && errno == EWOULDBLOCK;
  ::close(descriptor);
  return taken || is_held ? std::optional(is_held) : std::nullopt;
}

}  // namespace heed
