// One core, of which nothing more is known.
#include "base/topology.h"

namespace heed {

std::int64_t Topology::cores() const { return 1; }
std::int64_t Topology::packages() const { return 1; }
std::int64_t Topology::memory_nodes() const { return 1; }

Topology read_topology(std::span<const std::int64_t>, const std::filesystem::path&) {
  return {.processors = {Processor{}}};
}

std::vector<std::int64_t> allowed_processors() { return {}; }
bool threads_are_pinned() { return false; }
void keep_in_place(int, int) {}
int planned_threads(const Topology&) { return 1; }
std::int64_t second_level_cache_bytes() { return std::int64_t{1} << 20; }

}  // namespace heed
