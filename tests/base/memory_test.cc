#include "base/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace heed {
namespace {

TEST(AvailableMemory, IsSomeOfTheMachine) {
  const auto available = available_memory();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(*available, 0);
}

TEST(MemoryUse, SeesABlockThatWasTouched) {
  constexpr std::int64_t size = 64 << 20;
  const std::int64_t before = peak_resident_bytes();
  EXPECT_GT(before, 0);
  {
    const auto block = std::make_unique<char[]>(size);
    std::memset(block.get(), 1, size);
  }
  const std::int64_t peak = peak_resident_bytes();
  EXPECT_GE(peak, size);
  reset_peak_resident_bytes();
  // a little more at most: asking reads a file, for which a sanitizer's allocator takes pages anew
  EXPECT_LE(peak_resident_bytes(), peak + size / 16);
}

}  // namespace
}  // namespace heed
