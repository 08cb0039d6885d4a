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

// heed/`kind` in the directory that the variable names, or in `in_home` of HOME.
std::filesystem::path directory_of(const char* variable, const char* in_home,
                                   std::string_view kind) {
  const std::filesystem::path named = absolute_path_from(variable);
  if (!named.empty()) return named / "heed" / kind;
  const std::filesystem::path home = absolute_path_from("HOME");
  return home.empty() ? home : home / in_home / "heed" / kind;
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

}  // namespace heed
