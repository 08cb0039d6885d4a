#include "base/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/fake_root.h"

namespace heed {
namespace {

struct DescribedMachine : testing::FakeRoot {
  void processor(int number, const std::string& core, int package) const {
    const std::string topology = fmt::format("sys/devices/system/cpu/cpu{}/topology", number);
    write(topology + "/core_cpus_list", core);
    write(topology + "/physical_package_id", std::to_string(package));
  }
  void node(int number, const std::string& processors) const {
    write(fmt::format("sys/devices/system/node/node{}/cpulist", number), processors);
  }
  Topology read(std::int64_t first, std::int64_t end) const {
    std::vector<std::int64_t> allowed(static_cast<std::size_t>(end - first));
    std::iota(allowed.begin(), allowed.end(), first);
    return read_topology(allowed, path());
  }
};

// Two sockets of 16 cores with two threads each, as servers number them: the second threads last.
struct TwoSockets : DescribedMachine {
  TwoSockets() {
    for (int number = 0; number < 64; ++number) {
      const int core = number % 32;
      processor(number, fmt::format("{},{}", core, core + 32), core / 16);
    }
    write("sys/devices/system/node/online", "0-1");
    node(0, "0-15,32-47");
    node(1, "16-31,48-63");
  }
};

TEST(Topology, CountsSocketsCoresAndMemories) {
  const Topology topology = TwoSockets().read(0, 64);
  EXPECT_EQ(topology.processors.size(), 64U);
  EXPECT_EQ(topology.cores(), 32);
  EXPECT_EQ(topology.packages(), 2);
  EXPECT_EQ(topology.memory_nodes(), 2);
  EXPECT_EQ(topology.processors[50].core, 18);
  EXPECT_EQ(topology.processors[50].package, 1);
  EXPECT_EQ(topology.processors[50].node, 1);
  EXPECT_FALSE(topology.quota.has_value());
  EXPECT_EQ(planned_threads(topology), 32);
}

TEST(Topology, CountsOnlyWhatIsAllowed) {
  const Topology topology = TwoSockets().read(0, 16);
  EXPECT_EQ(topology.packages(), 1);
  EXPECT_EQ(topology.memory_nodes(), 1);
  EXPECT_EQ(planned_threads(topology), 16);
}

TEST(Topology, HoldsToTheLeastQuotaOfItsGroups) {
  const TwoSockets machine;
  machine.write("proc/self/cgroup", "12:devices:/other\n0::/pods/one");
  machine.write("sys/fs/cgroup/pods/cpu.max", "350000 100000");
  EXPECT_DOUBLE_EQ(machine.read(0, 64).quota.value(), 3.5);
  EXPECT_EQ(planned_threads(machine.read(0, 64)), 4);
  machine.write("sys/fs/cgroup/pods/one/cpu.max", "50000 100000");
  EXPECT_EQ(planned_threads(machine.read(0, 64)), 1);
  machine.write("sys/fs/cgroup/pods/one/cpu.max", "max 100000");
  EXPECT_EQ(planned_threads(machine.read(0, 64)), 4);
}

TEST(Topology, HoldsToTheQuotaOfEitherVersionOfControlGroups) {
  const TwoSockets machine;
  machine.write("proc/self/cgroup", "3:cpu,cpuacct:/docker/one\n2:cpuset:/docker/one\n0::/");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(machine.read(0, 64).quota.has_value());
  machine.write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "250000");
  machine.write("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(machine.read(0, 64).quota.value(), 2.5);
  EXPECT_EQ(planned_threads(machine.read(0, 64)), 3);
  // In a container the mount is the group itself.
  machine.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000");
  EXPECT_DOUBLE_EQ(machine.read(0, 64).quota.value(), 0.5);
  EXPECT_EQ(planned_threads(machine.read(0, 64)), 1);
}

// Six fast cores with two threads each, and eight efficient ones.
TEST(Topology, LeavesEfficientCoresOut) {
  DescribedMachine machine;
  for (int number = 0; number < 12; ++number) {
    machine.processor(number, fmt::format("{}-{}", number / 2 * 2, number / 2 * 2 + 1), 0);
  }
  for (int number = 12; number < 20; ++number) machine.processor(number, std::to_string(number), 0);
  machine.write("sys/devices/cpu_atom/cpus", "12-19");
  EXPECT_EQ(machine.read(0, 20).cores(), 14);
  EXPECT_EQ(planned_threads(machine.read(0, 20)), 6);
}

// ARM tells the capacities: two fast cores, two of three quarters, four small ones.
TEST(Topology, KeepsCoresOfHalfTheCapacity) {
  DescribedMachine machine;
  const int capacities[] = {1024, 1024, 768, 768, 400, 400, 400, 400};
  for (int number = 0; number < 8; ++number) {
    machine.processor(number, std::to_string(number), 0);
    machine.write(fmt::format("sys/devices/system/cpu/cpu{}/cpu_capacity", number),
                  std::to_string(capacities[number]));
  }
  EXPECT_EQ(planned_threads(machine.read(0, 8)), 4);
  // Where only small ones are allowed, they are the fastest.
  EXPECT_EQ(planned_threads(machine.read(4, 8)), 4);
}

TEST(Topology, TakesSilenceAndNonsenseAsAlikeCores) {
  EXPECT_EQ(planned_threads(read_topology(std::vector<std::int64_t>{0, 1, 5}, "/nowhere")), 3);
  EXPECT_EQ(planned_threads(Topology{}), 1);
  const TwoSockets machine;
  machine.processor(0, "3-1,,x", 0);
  machine.write("sys/devices/system/cpu/cpu1/cpu_capacity", "fast");
  machine.write("sys/devices/system/node/online", "0-");
  machine.write("proc/self/cgroup", "0::/../../x");
  machine.write("sys/fs/cgroup/cpu.max", "-5 0");
  const Topology topology = machine.read(0, 2);
  EXPECT_EQ(topology.processors[0].core, 0);
  EXPECT_EQ(topology.memory_nodes(), 1);
  EXPECT_FALSE(topology.quota.has_value());
  EXPECT_EQ(planned_threads(topology), 2);
}

TEST(Topology, KnowsThisMachine) {
  const std::vector<std::int64_t> allowed = allowed_processors();
  ASSERT_FALSE(allowed.empty());
  const Topology topology = read_topology(allowed);
  EXPECT_EQ(topology.processors.size(), allowed.size());
  EXPECT_GE(planned_threads(topology), 1);
  EXPECT_LE(planned_threads(topology), static_cast<int>(allowed.size()));
}

}  // namespace
}  // namespace heed
