#include "base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace heed {
namespace {

namespace fs = std::filesystem;

// MemAvailable of /proc/meminfo.
std::optional<std::int64_t> available_in_machine(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  std::string key, unit;
  std::int64_t kibibytes = 0;
  while (file >> key >> kibibytes && std::getline(file, unit)) {
    if (key == "MemAvailable:") return kibibytes * 1024;
  }
  return std::nullopt;
}

// The number in a control group's file; nothing for "max".
std::optional<std::int64_t> group_number(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// What the system may take back from the group at any time: pages of files, not used recently.
std::int64_t reclaimable_bytes(const fs::path& statistics, std::string_view name) {
  std::ifstream file(statistics);
  std::string key;
  for (std::int64_t value = 0; file >> key >> value;) {
    if (key == name) return value;
  }
  return 0;
}

// The files that tell a group's limit and use.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // in memory.stat
};
constexpr GroupFiles group_files[] = {
    {"memory.max", "memory.current", "inactive_file"},                           // version 2
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}};  // version 1

// What a group's limit leaves; nothing where it has none.
std::optional<std::int64_t> left_in_group(const fs::path& group) {
  for (const GroupFiles& files : group_files) {
    const auto limit = group_number(group / files.limit);
    const auto used = group_number(group / files.used);
    if (!limit || !used || *limit < 0) continue;
    const std::int64_t reclaimable = std::clamp<std::int64_t>(
        reclaimable_bytes(group / "memory.stat", files.reclaimable), 0, *used);
    return std::max<std::int64_t>(*limit - (*used - reclaimable), 0);
  }
  return std::nullopt;
}

bool is_listed(std::string_view name, std::string_view names) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    if (names.substr(0, comma) == name) return true;
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
  }
  return false;
}

// More than the containers of any document that fits take in nlohmann's list of what is left to
// destroy. It is not touched, so it is address space and no memory. Where there is not that much,
// less will do: documents are smaller, too.
constexpr std::size_t max_reserved = 16 << 20;
constexpr std::size_t min_reserved = 64 << 10;

std::atomic<void*> reserve{nullptr};

// The allocation fails; those that follow have the reserve.
[[noreturn]] void give_back_reserve() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

}  // namespace

std::optional<std::int64_t> available_memory(const fs::path& root) {
  std::optional<std::int64_t> available = available_in_machine(root);
  for (const fs::path& group : control_group_directories("memory", root)) {
    if (const auto left = left_in_group(group))
      available = std::min(*left, available.value_or(*left));
  }
  return available;
}

std::int64_t peak_resident_bytes() {
  // "VmHWM:    12345 kB": the peak, which a reset lowers, unlike that of getrusage().
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

void reset_peak_resident_bytes() {
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): "Reset the peak resident set size"
}

void limit_malloc_arenas([[maybe_unused]] int arenas) {
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, arenas);
#endif
}

void return_large_blocks([[maybe_unused]] std::int64_t bytes) {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(bytes));
#endif
}

void return_free_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

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

void reserve_memory_for_unwinding() noexcept {
  for (std::size_t bytes = max_reserved; bytes >= min_reserved; bytes /= 2) {
    if (reserve.load() == nullptr) std::free(reserve.exchange(std::malloc(bytes)));
  }
  std::set_new_handler(give_back_reserve);
}

}  // namespace heed
