#include "base/topology.h"

#include <fmt/format.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "base/memory.h"
#include "base/numbers.h"

namespace heed {
namespace {

namespace fs = std::filesystem;

// What the description of a hybrid processor does not put into numbers: vectors of its efficient
// cores are half as wide.
constexpr double efficient_core = 0.4;

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

// "0-3,8" as numbers; empty if the file is missing or says something else.
std::vector<std::int64_t> read_list(const fs::path& path) {
  const std::optional<std::string> line = first_line(path);
  if (!line) return {};
  try {
    return parse_indices(*line);
  } catch (const Error&) {
    return {};
  }
}

std::optional<double> read_number(const fs::path& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number && number >= 0 ? std::optional(number) : std::nullopt;
}

std::int64_t core_of(const fs::path& topology, std::int64_t number) {
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {
    if (const auto siblings = read_list(topology / name); !siblings.empty()) {
      return std::ranges::min(siblings);
    }
  }
  return number;
}

std::map<std::int64_t, std::int64_t> nodes_of_processors(const fs::path& nodes) {
  std::map<std::int64_t, std::int64_t> found;
  for (const std::int64_t node : read_list(nodes / "online")) {
    for (const std::int64_t number : read_list(nodes / fmt::format("node{}", node) / "cpulist")) {
      found[number] = node;
    }
  }
  return found;
}

// Microseconds of processors in each period of so many: "200000 100000" in version 2, where "max"
// allows all; two files in version 1, where -1 allows all.
std::optional<double> quota_of(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double allowed = 0, period = 0;
  if (!(file >> allowed >> period)) {
    allowed = read_number(group / "cpu.cfs_quota_us").value_or(0);
    period = read_number(group / "cpu.cfs_period_us").value_or(0);
  }
  return allowed > 0 && period > 0 ? std::optional(allowed / period) : std::nullopt;
}

// The least quota of the groups and those that they are in.
std::optional<double> read_quota(const fs::path& root) {
  std::optional<double> least;
  for (const fs::path& group : control_group_directories("cpu", root)) {
    if (const auto quota = quota_of(group)) least = std::min(*quota, least.value_or(*quota));
  }
  return least;
}

// Capacities in units of the largest.
void compare_capacities(std::vector<Processor>& processors) {
  double largest = 0;
  for (const Processor& processor : processors) largest = std::max(largest, processor.capacity);
  for (Processor& processor : processors) {
    processor.capacity = largest > 0 ? processor.capacity / largest : 1;
  }
}

std::int64_t count_distinct(const std::vector<Processor>& processors,
                            std::int64_t Processor::*member) {
  std::set<std::int64_t> values;
  for (const Processor& processor : processors) values.insert(processor.*member);
  return std::ssize(values);
}

}  // namespace

std::int64_t Topology::cores() const { return count_distinct(processors, &Processor::core); }
std::int64_t Topology::packages() const { return count_distinct(processors, &Processor::package); }
std::int64_t Topology::memory_nodes() const { return count_distinct(processors, &Processor::node); }

Topology read_topology(std::span<const std::int64_t> allowed, const fs::path& root) {
  const fs::path devices = root / "sys/devices";
  const auto nodes = nodes_of_processors(devices / "system/node");
  const std::vector<std::int64_t> efficient = read_list(devices / "cpu_atom/cpus");
  Topology topology{.quota = read_quota(root)};
  for (const std::int64_t number : allowed) {
    const fs::path processor = devices / "system/cpu" / fmt::format("cpu{}", number);
    const double unnamed =
        std::ranges::find(efficient, number) != efficient.end() ? 1024 * efficient_core : 1024;
    const auto node = nodes.find(number);
    topology.processors.push_back(
        {.number = number,
         .core = core_of(processor / "topology", number),
         .package = static_cast<std::int64_t>(
             read_number(processor / "topology/physical_package_id").value_or(0)),
         .node = node != nodes.end() ? node->second : 0,
         .capacity = read_number(processor / "cpu_capacity").value_or(unnamed)});
  }
  compare_capacities(topology.processors);
  return topology;
}

std::vector<std::int64_t> allowed_processors() {
  std::vector<std::int64_t> numbers;
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    numbers.insert(numbers.end(), ids.begin(), ids.end());
  }
  if (!numbers.empty()) return numbers;
  std::ifstream status("/proc/self/status");
  constexpr std::string_view name = "Cpus_allowed_list:\t";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return parse_indices(line.substr(name.size()));
  }
  return {};
}

bool threads_are_pinned() { return omp_get_proc_bind() != omp_proc_bind_false; }

void keep_in_place(int thread, int threads) {
  const int places = omp_get_num_places();
  if (!threads_are_pinned() || places == 0) return;
  const omp_proc_bind_t policy = omp_get_proc_bind();
  int place = 0;
  if (policy == omp_proc_bind_spread || threads > places) {
    place = static_cast<int>(static_cast<std::int64_t>(thread) * places / threads);
  } else if (policy != omp_proc_bind_master) {
    place = thread;
  }
  std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
  omp_get_place_proc_ids(place, ids.data());
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int id : ids) CPU_SET(static_cast<std::size_t>(id), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

int planned_threads(const Topology& topology) {
  std::set<std::int64_t> cores;
  for (const Processor& processor : topology.processors) {
    if (processor.capacity >= 0.5) cores.insert(processor.core);
  }
  std::int64_t threads = std::ssize(cores);
  if (topology.quota) {
    const double most = std::ceil(std::min(*topology.quota, 1e6));
    threads = std::min(threads, static_cast<std::int64_t>(most));
  }
  return static_cast<int>(std::max<std::int64_t>(threads, 1));
}

std::int64_t second_level_cache_bytes() {
  static const std::int64_t bytes = [] {
    const long told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return told > 0 ? static_cast<std::int64_t>(told) : std::int64_t{1} << 20;
  }();
  return bytes;
}

}  // namespace heed
