// Paths as runs record them: runs are resumed from anywhere.
#pragma once

#include <filesystem>
#include <string>

namespace heed {

inline std::string absolute_text(const std::filesystem::path& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).string();
}

}  // namespace heed
