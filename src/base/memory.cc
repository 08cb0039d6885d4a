#include "base/memory.h"

#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <string>

namespace heed {
namespace {

// Returns the number after `name` in /proc/meminfo, in bytes.
std::optional<std::int64_t> meminfo(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  std::int64_t kibibytes = 0;
  while (file >> key >> kibibytes && std::getline(file, unit)) {
    if (key == name) return kibibytes * 1024;
  }
  return std::nullopt;
}

// Reads the number in a control group's file; nothing for "max".
std::optional<std::int64_t> group_number(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> available_memory() {
  std::optional<std::int64_t> available = meminfo("MemAvailable:");
  const auto limit = group_number("/sys/fs/cgroup/memory.max");
  const auto used = group_number("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    const std::int64_t left = std::max<std::int64_t>(*limit - *used, 0);
    available = available ? std::min(*available, left) : left;
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
