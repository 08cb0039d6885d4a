#include "base/memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "base/fake_root.h"

namespace heed {
namespace {

TEST(AvailableMemory, IsSomeOfTheMachine) {
  const auto available = available_memory();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(*available, 0);
}

struct FakeMachine : testing::FakeRoot {
  FakeMachine() { write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB"); }
  std::optional<std::int64_t> available() const { return available_memory(path()); }
};

TEST(AvailableMemory, IsThatOfTheMachineWithoutLimits) {
  const FakeMachine machine;
  EXPECT_EQ(machine.available(), 8000 * 1024);
  machine.write("proc/self/cgroup", "9:memory:/docker/one\n0::/pods/one");
  machine.write("sys/fs/cgroup/pods/one/memory.max", "max");
  machine.write("sys/fs/cgroup/pods/one/memory.current", "1000");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1000");
  EXPECT_EQ(machine.available(), 8000 * 1024);
}

TEST(AvailableMemory, IsWhatTheLeastLimitOfVersion2Leaves) {
  const FakeMachine machine;
  machine.write("proc/self/cgroup", "0::/pods/one");
  machine.write("sys/fs/cgroup/pods/memory.max", "500000");
  machine.write("sys/fs/cgroup/pods/memory.current", "200000");
  EXPECT_EQ(machine.available(), 300000);
  machine.write("sys/fs/cgroup/pods/one/memory.max", "150000");
  machine.write("sys/fs/cgroup/pods/one/memory.current", "100000");
  EXPECT_EQ(machine.available(), 50000);
  machine.write("sys/fs/cgroup/pods/one/memory.stat", "anon 10\ninactive_file 30000");
  EXPECT_EQ(machine.available(), 80000);
  machine.write("sys/fs/cgroup/pods/one/memory.current", "400000");  // above the limit
  EXPECT_EQ(machine.available(), 0);
}

TEST(AvailableMemory, IsWhatTheLeastLimitOfVersion1Leaves) {
  const FakeMachine machine;
  machine.write("proc/self/cgroup", "9:memory:/docker/one\n3:cpu,cpuacct:/docker/one\n0::/");
  machine.write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "700000");
  machine.write("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "200000");
  EXPECT_EQ(machine.available(), 500000);
  machine.write("sys/fs/cgroup/memory/docker/one/memory.limit_in_bytes", "300000");
  machine.write("sys/fs/cgroup/memory/docker/one/memory.usage_in_bytes", "200000");
  machine.write("sys/fs/cgroup/memory/docker/one/memory.stat", "total_inactive_file 50000");
  EXPECT_EQ(machine.available(), 150000);
  // In a container the mount is the group itself.
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "100000");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "40000");
  EXPECT_EQ(machine.available(), 60000);
}

TEST(AvailableMemory, IgnoresWhatItDoesNotUnderstand) {
  const FakeMachine machine;
  machine.write("proc/self/cgroup", "nonsense\n0::/../../x\n9:memory");
  machine.write("sys/fs/cgroup/memory.max", "-5 x");
  machine.write("sys/fs/cgroup/memory.current", "nothing");
  EXPECT_EQ(machine.available(), 8000 * 1024);
}

TEST(MemoryUse, SeesABlockThatWasTouched) {
  constexpr std::int64_t size = 64 << 20;
  const std::int64_t before = peak_resident_bytes();
  EXPECT_GT(before, 0);
  {
    // volatile: a compiler may leave out what nothing reads, and the block with it
    const auto block = std::make_unique<volatile char[]>(size);
    for (std::int64_t i = 0; i < size; i += 1024) block[static_cast<std::size_t>(i)] = 1;
  }
  const std::int64_t peak = peak_resident_bytes();
  EXPECT_GE(peak, size);
  reset_peak_resident_bytes();
  // a little more at most: asking reads a file, for which a sanitizer's allocator takes pages anew
  EXPECT_LE(peak_resident_bytes(), peak + size / 16);
}

}  // namespace
}  // namespace heed
