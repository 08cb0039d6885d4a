// The control groups (cgroups) that limit this process.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace heed {

// Directories of the groups of `controller` ("cpu", "memory") that this process is in, each after
// the groups that contain it: of version 2, and of version 1. A directory may be listed twice or be
// missing. `root` is where sysfs and procfs are.
std::vector<std::filesystem::path> control_group_directories(
    std::string_view controller, const std::filesystem::path& root = "/");

}  // namespace heed
