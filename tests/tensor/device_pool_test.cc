#include "tensor/device_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "base/random.h"

namespace heed {
namespace {

constexpr std::size_t chunk = 4096;

// A device of so many chunks of memory, which are mapped and unmapped as a real one's.
struct Chunks {
  std::size_t most = 1000;
  std::vector<bool> mapped = std::vector<bool>(64);
  bool lets_go = true;

  DevicePool::Chunks chunks() {
    return {.bytes = chunk,
            .map =
                [this](std::size_t offset, std::size_t bytes) {
                  const auto now = static_cast<std::size_t>(std::ranges::count(mapped, true));
                  if (now + bytes / chunk > most) return false;
                  for (std::size_t i = offset / chunk; i < (offset + bytes) / chunk; ++i) {
                    EXPECT_FALSE(mapped[i]);
                    mapped[i] = true;
                  }
                  return true;
                },
            .unmap =
                [this](std::size_t offset, std::size_t bytes) {
                  if (!lets_go) return false;
                  for (std::size_t i = offset / chunk; i < (offset + bytes) / chunk; ++i) {
                    EXPECT_TRUE(mapped[i]);
                    mapped[i] = false;
                  }
                  return true;
                }};
  }
};

TEST(DevicePool, TakesTheSmallestGapThatFits) {
  Chunks device;
  DevicePool pool(64 * chunk, device.chunks(), 64 * chunk);
  const std::size_t a = pool.take(1000), b = pool.take(3000), c = pool.take(1), d = pool.take(9000);
  EXPECT_EQ(a, 0U);
  EXPECT_EQ(b, 1024U);
  EXPECT_EQ(c, 1024U + 3072U);
  pool.give_back(a);
  pool.give_back(c);
  EXPECT_EQ(pool.take(512), c);  // not the first gap, of 1024
  pool.give_back(b);
  EXPECT_EQ(pool.take(4000), a);  // both gaps, and what was between them
  EXPECT_EQ(pool.used(), 4096U + 512U + 9216U);
  EXPECT_EQ(d % DevicePool::unit, 0U);
}

TEST(DevicePool, GivesAllMemoryBack) {
  Chunks device;
  DevicePool pool(64 * chunk, device.chunks(), 0);
  const std::size_t a = pool.take(5 * chunk), b = pool.take(chunk / 2);
  EXPECT_EQ(pool.mapped(), 6 * chunk);
  pool.give_back(a);
  EXPECT_EQ(pool.mapped(), chunk);  // that of b
  pool.give_back(b);
  EXPECT_EQ(pool.mapped(), 0U);
  EXPECT_EQ(pool.largest(), 5 * chunk + chunk / 2);
}

TEST(DevicePool, KnowsWhereItEnds) {
  Chunks device{.most = 8};
  DevicePool pool(64 * chunk, device.chunks(), 64 * chunk);
  EXPECT_EQ(pool.take(65 * chunk), DevicePool::none);
  EXPECT_EQ(pool.take(9 * chunk), DevicePool::none);
  EXPECT_EQ(pool.take(0), DevicePool::none);
  const std::size_t a = pool.take(6 * chunk);
  ASSERT_NE(a, DevicePool::none);
  pool.give_back(a);
  EXPECT_NE(pool.take(8 * chunk), DevicePool::none);
}

// After a failure nothing is unmapped, and nothing is lost.
TEST(DevicePool, KeepsWhatTheDeviceDoesNotLetGo) {
  Chunks device;
  DevicePool pool(64 * chunk, device.chunks(), 0);
  const std::size_t a = pool.take(3 * chunk);
  device.lets_go = false;
  pool.give_back(a);
  EXPECT_EQ(pool.used(), 0U);
  EXPECT_EQ(pool.mapped(), 3 * chunk);
  EXPECT_EQ(pool.take(2 * chunk), a);
  EXPECT_EQ(pool.mapped(), 3 * chunk);
}

// Blocks never overlap, and lie in mapped chunks.
TEST(DevicePool, HoldsWhateverIsTakenAndGivenBack) {
  Chunks device;
  DevicePool pool(64 * chunk, device.chunks(), 4 * chunk);
  RandomStream random(3, 0);
  std::map<std::size_t, std::size_t> blocks;  // bytes by offset
  std::size_t taken = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    if (random.below(2) == 0 && !blocks.empty()) {
      auto block = blocks.begin();
      std::advance(block, static_cast<std::ptrdiff_t>(random.below(blocks.size())));
      pool.give_back(block->first);
      blocks.erase(block);
    } else {
      const std::size_t bytes = 1 + static_cast<std::size_t>(random.below(3 * chunk));
      const std::size_t offset = pool.take(bytes);
      if (offset == DevicePool::none) continue;
      ++taken;
      const auto next = blocks.lower_bound(offset);
      EXPECT_TRUE(next == blocks.end() || offset + bytes <= next->first);
      if (next != blocks.begin()) {
        const auto before = std::prev(next);
        EXPECT_LE(before->first + before->second, offset);
      }
      for (std::size_t i = offset / chunk; i <= (offset + bytes - 1) / chunk; ++i) {
        EXPECT_TRUE(device.mapped[i]);
      }
      blocks.emplace(offset, bytes);
    }
  }
  EXPECT_GT(taken, 5000U);
  while (!blocks.empty()) {
    pool.give_back(blocks.begin()->first);
    blocks.erase(blocks.begin());
  }
  EXPECT_EQ(pool.used(), 0U);
  EXPECT_EQ(pool.mapped(), 0U);
}

}  // namespace
}  // namespace heed
