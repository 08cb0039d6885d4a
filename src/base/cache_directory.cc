#include "base/cache_directory.h"

#include <cstdlib>

namespace heed {
namespace {

// Empty where the variable is not set or not absolute.
std::filesystem::path absolute_path_from(const char* variable) {
  const char* const value = std::getenv(variable);
  std::filesystem::path path(value != nullptr ? value : "");
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path cache_directory(std::string_view kind) {
  if (const char* own = std::getenv("HEED_CACHE"); own != nullptr && *own != '\0') {
    return std::filesystem::path(own) / kind;
  }
  const std::filesystem::path cache = absolute_path_from("XDG_CACHE_HOME");
  if (!cache.empty()) return cache / "heed" / kind;
  const std::filesystem::path home = absolute_path_from("HOME");
  return home.empty() ? home : home / ".cache" / "heed" / kind;
}

}  // namespace heed
