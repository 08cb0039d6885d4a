#include "kernels/machine_peak.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace heed::kernels {
namespace {

TEST(MachinePeak, MeasuresEveryLoopThatThereIs) {
  for (const PeakLoop loop : {PeakLoop::multiply_add_f32, PeakLoop::dot_product_bf16,
                              PeakLoop::tile_product_bf16, PeakLoop::read}) {
    if (!has_peak_loop(loop)) {
      testing::expect_error(
          ErrorCode::unsupported, [&] { measure_peak(loop, 1); }, "instructions");
      continue;
    }
    const PeakMeasurement measurement = measure_peak(loop, 2);
    ASSERT_EQ(measurement.seconds.size(), 2U);
    EXPECT_GT(measurement.seconds[0], 0);
    EXPECT_GT(measurement.work, 0);
  }
  testing::expect_error(
      ErrorCode::invalid_argument, [] { measure_peak(PeakLoop::read, 0); }, "0 runs");
}

TEST(MachinePeak, TakesTheFastestRun) {
  EXPECT_EQ((PeakMeasurement{.work = 6, .seconds = {3, 2, 4}}).best_rate(), 3);
}

}  // namespace
}  // namespace heed::kernels
