#include "base/memory.h"

#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "base/control_groups.h"

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

}  // namespace heed
