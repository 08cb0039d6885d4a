#include "kernels/machine_peak.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/expect_error.h"
#include "kernels/instruction_sets.h"

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
    const PeakMeasurement longer = measure_peak(loop, 1, 8);
    ASSERT_EQ(longer.seconds.size(), 1U);
    EXPECT_EQ(longer.work, 8 * measurement.work);
    EXPECT_GT(longer.seconds[0], 2 * std::ranges::min(measurement.seconds));
  }
  testing::expect_error(
      ErrorCode::invalid_argument, [] { measure_peak(PeakLoop::read, 0); }, "0 runs");
  testing::expect_error(
      ErrorCode::invalid_argument, [] { measure_peak(PeakLoop::read, 1, 0); }, "a length of 0");
}

TEST(MachinePeak, HasTheLoopsOfTheInstructionsInUse) {
  for (const std::string& set : available_instruction_sets()) {
    use_instruction_set(set);
    const bool tiles = set == "AMX_BF16", dot_products = set.ends_with("BF16");
    EXPECT_EQ(has_peak_loop(PeakLoop::tile_product_bf16), tiles) << set;
    EXPECT_EQ(has_peak_loop(PeakLoop::dot_product_bf16), dot_products) << set;
    EXPECT_TRUE(has_peak_loop(PeakLoop::multiply_add_f32)) << set;
  }
  use_instruction_set("");
}

TEST(MachinePeak, TakesTheFastestRun) {
  EXPECT_EQ((PeakMeasurement{.work = 6, .seconds = {3, 2, 4}}).best_rate(), 3);
}

}  // namespace
}  // namespace heed::kernels
