// Where heed keeps what can be made or downloaded again.
#pragma once

#include <filesystem>
#include <string_view>

namespace heed {

// HEED_CACHE/`kind`, or else heed/`kind` in XDG_CACHE_HOME or in .cache of HOME. Relative values of
// the latter two are ignored, as the XDG specification requires; empty where none of the three
// names a directory.
std::filesystem::path cache_directory(std::string_view kind);

// An empty cache_directory() in an error message.
inline constexpr std::string_view no_cache_directory =
    "none of HEED_CACHE, XDG_CACHE_HOME and HOME names a directory";

}  // namespace heed
