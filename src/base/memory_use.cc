#include "base/memory_use.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace heed {

std::int64_t peak_resident_bytes() {
  // "VmHWM:    12345 kB": the high-water mark, which a reset lowers; rusage's maximum it does not.
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

}  // namespace heed
