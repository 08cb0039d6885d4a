// The processors of this machine, and how many threads heed computes with on them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace heed {

// A logical processor. Processors with the same core share its vector units and caches.
struct Processor {
  std::int64_t number = 0;   // of the system
  std::int64_t core = 0;     // the first processor of its core
  std::int64_t package = 0;  // the socket
  std::int64_t node = 0;     // the memory that is near to it
  double capacity = 1;       // its speed, as a part of the fastest's
};

struct Topology {
  std::vector<Processor> processors;  // that this process may run on
  std::optional<double> quota;        // the processors' time that its control group may use

  std::int64_t cores() const;
  std::int64_t packages() const;
  std::int64_t memory_nodes() const;
};

// The topology of the processors `allowed`, as Linux describes them below `root`: sysfs, procfs and
// control groups of both versions. What is missing or not understood there counts as a machine of
// one package and one memory, whose cores are alike and run one thread each.
Topology read_topology(std::span<const std::int64_t> allowed,
                       const std::filesystem::path& root = "/");

// The processors that this process may run on: those of OpenMP's places (OMP_PLACES,
// OMP_PROC_BIND), which may have pinned the calling thread to one of them, or else those that the
// system allows. Empty if neither tells.
std::vector<std::int64_t> allowed_processors();

// Whether OpenMP keeps each thread where it is (OMP_PROC_BIND).
bool threads_are_pinned();

// Pins the calling thread, number `thread` of `threads`, where OpenMP would (OMP_PLACES,
// OMP_PROC_BIND), counted from the first place; does nothing if OpenMP pins none.
void keep_in_place(int thread, int threads);

// One thread a core: a second one there competes for the same vector units. Cores of less than half
// the capacity of the fastest are left out, since loops that are cut into equal parts would wait
// for them. No more than the quota, rounded up: threads beyond it are stopped, and the others wait.
// At least 1.
int planned_threads(const Topology& topology);

// The size of a core's second-level cache; one MiB where the system does not tell.
std::int64_t second_level_cache_bytes();

}  // namespace heed
