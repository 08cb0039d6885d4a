#include "base/memory.h"

#include <gtest/gtest.h>

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
