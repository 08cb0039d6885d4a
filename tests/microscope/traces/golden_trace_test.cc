// The microscope against PyTorch: every point and its gradient, through a request.
#include <gtest/gtest.h>

#include "model/comparison.h"
#include "support/golden.h"
#include "support/trace_step.h"

namespace heed {
namespace {

TEST(GoldenTrace, HoldsEveryPointAndItsGradient) {
  for (const char* name : {"gpt_tied", "gpt_untied"}) {
    const testing::Golden golden(name);
    const Trace trace =
        testing::trace_step(golden.transformer(), golden.exact<std::int32_t>("tokens"),
                            golden.exact<std::int32_t>("targets"), {.points = {"*", "*_grad"}});
    std::size_t compared = 0;
    const auto compare = [&](std::string_view prefix, std::string_view suffix, double tolerance) {
      for (const TensorEntry& entry : golden.file().tensors()) {
        if (!entry.name.starts_with(prefix)) continue;
        const TracedArray& array = trace.at(entry.name.substr(prefix.size()) + std::string(suffix));
        EXPECT_TRUE(std::ranges::equal(array.shape, entry.shape)) << entry.name;
        EXPECT_LE(testing::relative_error(array.values, golden.floats(entry.name).span()),
                  tolerance)
            << entry.name;
        ++compared;
      }
    };
    // f32 against f64: as in tests/model/golden_test.cc
    compare("probe.", "", 1e-5);
    compare("probe_gradient.", "_grad", 1e-4);
    EXPECT_EQ(compared, trace.arrays.size());
    EXPECT_EQ(compared, 2 * all_points(golden.specification().layers).size());
  }
}

}  // namespace
}  // namespace heed
