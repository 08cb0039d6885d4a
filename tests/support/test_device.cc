// Linked into test programs: where HEED_TEST_DEVICE names a device, all kernels run there, on
// copies of their operands.
#include <gtest/gtest.h>

#include <cstdlib>

#include "kernels/placement.h"
#include "tensor/device.h"

namespace heed::testing {
namespace {

class TestDevice final : public ::testing::Environment {
 public:
  void SetUp() override { kernels::compute_on(open_device(std::getenv("HEED_TEST_DEVICE"))); }
  void TearDown() override { kernels::compute_on(Device{}); }
};

[[maybe_unused]] const ::testing::Environment* const environment =
    std::getenv("HEED_TEST_DEVICE") == nullptr
        ? nullptr
        : ::testing::AddGlobalTestEnvironment(new TestDevice);

}  // namespace
}  // namespace heed::testing
