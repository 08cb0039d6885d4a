#include "microscope/explain/loss_flow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <tuple>

#include "base/expect_error.h"
#include "generate/random_transformer.h"
#include "microscope/explain/nudge.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/toy_pairs.h"

namespace heed {
namespace {

using testing::Nudge;

class LossFlowOfAPass : public ::testing::Test {
 protected:
  double loss(Editor* editor) const {
    return -std::log(answer_probability(transformer, tokens, 7, editor));
  }

  const Transformer transformer = testing::random_transformer(testing::small_config());
  const std::vector<std::int32_t> tokens = testing::random_tokens(9, 61, 3);
  const RecordedPass pass{transformer, {.source = {}, .target = tokens}};
};

TEST_F(LossFlowOfAPass, LossIsThatOfTheToken) {
  EXPECT_NEAR(loss_flow(pass, 7, -1).loss, loss(nullptr), 1e-6);
}

// Central differences of a float pass, channel by channel: each loses about 1e-7 / 4e-3 to
// rounding.
TEST_F(LossFlowOfAPass, NormsAgreeWithFiniteDifferences) {
  constexpr float step = 2e-3F;
  const LossFlow whole = loss_flow(pass, 7, 8);
  const LossFlow::OfStack& flow = whole.stacks.at(0);
  ASSERT_EQ(std::ssize(flow.points), transformer.specification().layers + 1);
  for (const auto& [row, position] : {std::pair{0, 2}, std::pair{1, 8}, std::pair{3, 8}}) {
    double sum = 0;
    for (std::int64_t channel = 0; channel < transformer.specification().channels; ++channel) {
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
  const LossFlow whole = loss_flow(pass, 7, 4);
  const LossFlow::OfStack& flow = whole.stacks.at(0);
  for (std::int64_t row = 0; row < flow.norms.shape()[0]; ++row) {
    for (std::int64_t t = 5; t < 9; ++t) EXPECT_EQ(flow.norms.view()(row, t), 0);
  }
  // After the last block nothing mixes positions any more.
  const auto last = flow.norms.view()[flow.norms.shape()[0] - 1];
  for (std::int64_t t = 0; t < 4; ++t) EXPECT_EQ(last(t), 0);
  EXPECT_GT(last(4), 0);
}

// The loss of one token of a target, in both stacks of every kind of translator.
TEST(LossFlowOfAPair, AgreesWithFiniteDifferences) {
  for (const testing::ToyPairShape& shape : testing::toy_pair_shapes()) {
    const Transformer model = testing::toy_translator(shape);
    const RecordedPass pass(model, testing::toy_pair());
    const LossFlow flow = loss_flow(pass, 9, 3);
    ASSERT_EQ(flow.stacks.size(), 2U);
    EXPECT_EQ(flow.stacks[0].norms.shape(), (Shape{4, 7}));
    EXPECT_EQ(flow.stacks[1].norms.shape(), (Shape{3, 5}));
    EXPECT_NEAR(flow.loss, -std::log(pass.next_probabilities(3)[9]), 1e-9);
    constexpr float step = 2e-3F;
    for (const auto& [stack, row, position] : {std::tuple{0, 1, 2}, {0, 3, 6}, {1, 1, 3}}) {
      const LossFlow::OfStack& of = flow.stacks[static_cast<std::size_t>(stack)];
      double sum = 0;
      for (std::int64_t channel = 0; channel < 32; ++channel) {
        const auto loss_at = [&, at = of.points[static_cast<std::size_t>(row)],
                              where = position](float by) {
          const auto nudge = std::make_shared<Nudge>(at, where, channel, by);
          return -std::log(
              RecordedPass(model, testing::toy_pair(), nudge, {.keep = Keep::one_block})
                  .next_probabilities(3)[9]);
        };
        const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
        sum += slope * slope;
      }
      const double norm = of.norms.view()(row, position);
      EXPECT_GT(norm, 0);
      EXPECT_NEAR(norm, std::sqrt(sum), 0.02 * norm + 1e-3) << shape << ' ' << stack << ' ' << row;
    }
    // The decoder reads no later position; the encoder is read whole.
    EXPECT_EQ(flow.stacks[1].norms.view()(0, 4), 0);
    for (std::int64_t t = 0; t < 7; ++t) EXPECT_GT(flow.stacks[0].norms.view()(0, t), 0);
  }
}

TEST_F(LossFlowOfAPass, RefusesATokenOrPositionThatIsNotThere) {
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { loss_flow(pass, 61, -1); }, "61");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { loss_flow(pass, 7, 9); }, "9");
}

}  // namespace
}  // namespace heed
