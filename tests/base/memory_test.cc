#include "base/memory.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

TEST(AvailableMemory, IsSomeOfTheMachine) {
  const auto available = available_memory();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(*available, 0);
}

}  // namespace
}  // namespace heed
