// Where heed keeps what can be made or downloaded again, and what cannot.
#pragma once

#include <filesystem>
#include <string_view>

namespace heed {

// HEED_CACHE/`kind`, or else heed/`kind` in XDG_CACHE_HOME or in .cache of HOME. Relative values of
// the latter two are ignored, as the XDG specification requires; empty where none of the three
// names a directory.
std::filesystem::path cache_directory(std::string_view kind);

// For what cannot be made again: heed/`kind` in XDG_DATA_HOME or in .local/share of HOME; empty
// where neither names a directory.
std::filesystem::path data_directory(std::string_view kind);

// An empty cache_directory() in an error message.
inline constexpr std::string_view no_cache_directory =
    "none of HEED_CACHE, XDG_CACHE_HOME and HOME names a directory";

}  // namespace heed
