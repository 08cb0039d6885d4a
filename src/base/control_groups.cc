#include "base/control_groups.h"

#include <fstream>
#include <string>

namespace heed {
namespace {

namespace fs = std::filesystem;

bool is_listed(std::string_view name, std::string_view names) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    if (names.substr(0, comma) == name) return true;
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  return false;
}

}  // namespace

std::vector<fs::path> control_group_directories(std::string_view controller, const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  // In a container, the mount is the group itself.
  std::vector<fs::path> found{mounts, mounts / controller};
  const auto add = [&](fs::path directory, const fs::path& group) {
    for (const fs::path& part : group) found.push_back(directory /= part);
  };
  std::ifstream groups(root / "proc/self/cgroup");
  // "0::/user.slice" of version 2, or "4:cpu,cpuacct:/user.slice" of version 1.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = fs::path(line.substr(second + 1)).relative_path();
    if (controllers.empty()) add(mounts, group);
    if (!is_listed(controller, controllers)) continue;
    found.push_back(mounts / controllers);
    add(mounts / controllers, group);
    add(mounts / controller, group);
  }
  return found;
}

}  // namespace heed
