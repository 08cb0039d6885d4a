#include "model/input_checks.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/expect_error.h"

namespace heed {
namespace {

TEST(InputChecks, ATextHasBetweenOneTokenAndTheContext) {
  const StackSpecification config = make_gpt_config(1, 1, 8, 4, 10);
  const std::vector<std::int32_t> tokens(5, 1);
  const std::span<const std::int32_t> five(tokens);
  EXPECT_NO_THROW(require_text_fits(config, five.first(1)));
  EXPECT_NO_THROW(require_text_fits(config, five.first(4)));
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { require_text_fits(config, {}, "the prompt"); },
      "the prompt has no tokens: expected at least one token");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { require_text_fits(config, five); },
      "the text has 5 tokens, more than the model's context of 4; shorten it");
  EXPECT_NO_THROW(require_tokens(five));
  EXPECT_NO_THROW(require_positions_fit(config, 4));
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { require_positions_fit(config, 5); },
      "5 positions are more than the model's context of 4");
}

}  // namespace
}  // namespace heed
