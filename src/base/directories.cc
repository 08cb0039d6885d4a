#include "base/directories.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

// Empty where the variable is not set or not absolute.
std::filesystem::path absolute_path_from(const char* variable) {
  const char* const value = std::getenv(variable);
  std::filesystem::path path(value != nullptr ? value : "");
  return path.is_absolute() ? path : std::filesystem::path();
}

// heed/`kind` in the directory that the variable names, or in `in_home` of HOME.
std::filesystem::path directory_of(const char* variable, const char* in_home,
                                   std::string_view kind) {
  const std::filesystem::path named = absolute_path_from(variable);
  if (!named.empty()) return named / "heed" / kind;
  const std::filesystem::path home = absolute_path_from("HOME");
  return home.empty() ? home : home / in_home / "heed" / kind;
}

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

std::filesystem::path cache_directory(std::string_view kind) {
  if (const char* own = std::getenv("HEED_CACHE"); own != nullptr && *own != '\0') {
    return std::filesystem::path(own) / kind;
  }
  return directory_of("XDG_CACHE_HOME", ".cache", kind);
}

std::filesystem::path data_directory(std::string_view kind) {
  return directory_of("XDG_DATA_HOME", ".local/share", kind);
}

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
