// One process, with a file system of its own: what it locks is in its memory.
#include "base/directories.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/files.h"

namespace heed {
namespace {

std::map<int, std::filesystem::path>& locked() {
  static std::map<int, std::filesystem::path> paths;
  return paths;
}

}  // namespace

std::filesystem::path cache_directory(std::string_view kind) {
  const char* const own = std::getenv("HEED_CACHE");
  return own != nullptr && *own != '\0' ? std::filesystem::path(own) / kind
                                        : std::filesystem::path();
}

std::filesystem::path data_directory(std::string_view) { return {}; }

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  static int last = 0;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(directory, error);
  if (error) fail_with_errno("open the directory", directory, error.value());
  require(!is_locked(directory).value_or(false), ErrorCode::conflict,
          "'{}' is being written already: wait until that has ended", directory.string());
  descriptor_ = ++last;
  locked().emplace(descriptor_, path);
}

DirectoryLock::~DirectoryLock() { locked().erase(descriptor_); }

std::optional<bool> is_locked(const std::filesystem::path& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(directory, error);
  if (error) return std::nullopt;
  return std::ranges::any_of(locked(), [&](const auto& each) { return each.second == path; });
}

}  // namespace heed
