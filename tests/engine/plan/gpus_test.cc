#include "engine/plan/gpus.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed {
namespace {

// A GPU multiplies faster than it reads: hundreds of operations a byte, in all that there are.
TEST(Gpus, AreKnownByName) {
  EXPECT_EQ(find_gpu("h100").memory, 80e9);
  for (const Gpu& gpu : known_gpus()) {
    EXPECT_EQ(&find_gpu(gpu.name), &gpu);
    EXPECT_GT(gpu.products / gpu.bandwidth, 70) << gpu.name;
    EXPECT_LT(gpu.products / gpu.bandwidth, 600) << gpu.name;
    EXPECT_LT(gpu.link, gpu.bandwidth) << gpu.name;
  }
  testing::expect_error(
      ErrorCode::not_found, [] { find_gpu("h1000"); }, "h100", "rtx4090");
}

}  // namespace
}  // namespace heed
