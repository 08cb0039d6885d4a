// What this process holds at the moment.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // GCC's names
#define HEED_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)  // Clang's
#define HEED_SANITIZED 1
#endif
#endif

namespace heed::testing {

// Sanitizers keep what was freed, to see whether it is used again.
#ifdef HEED_SANITIZED
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

inline double resident_megabytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * ::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

inline std::int64_t entries_of(const std::filesystem::path& directory) {
  return std::distance(std::filesystem::directory_iterator(directory), {});
}

inline std::int64_t open_descriptors() { return entries_of("/proc/self/fd"); }
inline std::int64_t running_threads() { return entries_of("/proc/self/task"); }

}  // namespace heed::testing
