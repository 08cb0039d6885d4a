#include "microscope/explain/loss_flow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/expect_error.h"
#include "generate/random_gpt.h"
#include "microscope/explain/nudge.h"
#include "microscope/intervene/answer_probability.h"

namespace heed {
namespace {

using testing::Nudge;

class LossFlowOfAPass : public ::testing::Test {
 protected:
  double loss(Editor* editor) const {
    return -std::log(answer_probability(gpt, tokens, 7, editor));
  }

  const Transformer gpt = testing::random_gpt(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 3);
};

TEST_F(LossFlowOfAPass, LossIsThatOfTheToken) {
  EXPECT_NEAR(loss_flow(gpt, tokens, 7, -1).loss, loss(nullptr), 1e-6);
}

// Central differences of a float pass, channel by channel: each loses about 1e-7 / 4e-3 to
// rounding.
TEST_F(LossFlowOfAPass, NormsAgreeWithFiniteDifferences) {
  constexpr float step = 2e-3F;
  const LossFlow flow = loss_flow(gpt, tokens, 7, 8);
  ASSERT_EQ(std::ssize(flow.points), gpt.specification().layers + 1);
  for (const auto& [row, position] : {std::pair{0, 2}, std::pair{1, 8}, std::pair{3, 8}}) {
    double sum = 0;
    for (std::int64_t channel = 0; channel < gpt.specification().channels; ++channel) {
      const Point point = flow.points[static_cast<std::size_t>(row)];
      Nudge up(point, position, channel, step);
      Nudge down(point, position, channel, -step);
      const double slope = (loss(&up) - loss(&down)) / (2 * step);
      sum += slope * slope;
    }
    const double norm = flow.norms.view()(row, position);
    EXPECT_GT(norm, 0);
    EXPECT_NEAR(norm, std::sqrt(sum), 0.01 * norm + 1e-4) << row << " " << position;
  }
}

TEST_F(LossFlowOfAPass, ReachesNoPositionAfterThePredicted) {
  const LossFlow flow = loss_flow(gpt, tokens, 7, 4);
  for (std::int64_t row = 0; row < flow.norms.shape()[0]; ++row) {
    for (std::int64_t t = 5; t < 9; ++t) EXPECT_EQ(flow.norms.view()(row, t), 0);
  }
  // After the last block nothing mixes positions any more.
  const auto last = flow.norms.view()[flow.norms.shape()[0] - 1];
  for (std::int64_t t = 0; t < 4; ++t) EXPECT_EQ(last(t), 0);
  EXPECT_GT(last(4), 0);
}

TEST_F(LossFlowOfAPass, RefusesATokenOrPositionThatIsNotThere) {
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { loss_flow(gpt, tokens, 61, -1); }, "61");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { loss_flow(gpt, tokens, 7, 9); }, "9");
}

}  // namespace
}  // namespace heed
