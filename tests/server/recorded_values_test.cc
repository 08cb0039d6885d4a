// What interventions take from recorded passes: one replay of each, and memory that is shared.
#include "server/explorer/recorded_values.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "microscope/traces/kept_pass.h"
#include "server/exchange.h"
#include "server/explorer/memory_budget.h"
#include "support/small_model.h"

namespace heed::server {
namespace {

using heed::testing::expect_error;

class RecordedValuesTest : public ::testing::Test {
 protected:
  static Point block_point(std::int64_t layer) { return {PointKind::residual_pre, layer}; }

  // As many interventions at alternating layers, whose changes are to be filled in.
  void ask(std::size_t count, const RecordedValues::Form& form) {
    for (std::size_t i = 0; i < count; ++i) {
      interventions_.push_back(
          {.point = block_point(static_cast<std::int64_t>(i % 2)), .change = SetZero{}});
      new_tensors_ += values_.want(
          &pass_,
          [this](Probe& probe) {
            ++replays_;
            pass_.replay(probe);
          },
          interventions_.back().point, interventions_.size() - 1, form);
    }
  }
  const Tensor<float>& replaced(std::size_t i) const {
    return *std::get<ReplaceWith>(interventions_[i].change).values;
  }

  Gpt gpt_ = heed::testing::small_gpt(40);
  KeptPass pass_{gpt_, {3, 1, 4, 1, 5, 9, 2, 6}};
  RecordedValues values_;
  std::vector<Intervention> interventions_;
  int replays_ = 0;
  int new_tensors_ = 0;
};

TEST_F(RecordedValuesTest, EveryPassIsReplayedOnce) {
  ask(256, RecordedValues::Mean{});
  values_.fill(interventions_, nullptr);
  EXPECT_EQ(replays_, 1);
  const std::vector<std::vector<std::int32_t>> texts{{3, 1, 4, 1, 5, 9, 2, 6}};
  for (const std::size_t i : {0U, 1U, 254U, 255U}) {
    EXPECT_EQ(std::get<SetRow>(interventions_[i].change).row,
              mean_row(gpt_, interventions_[i].point, texts));
  }
}

TEST_F(RecordedValuesTest, InterventionsShareTheValuesOfAPoint) {
  ask(60, RecordedValues::All{});
  EXPECT_EQ(new_tensors_, 2);
  values_.fill(interventions_, nullptr);
  EXPECT_EQ(&replaced(0), &replaced(58));
  EXPECT_NE(&replaced(0), &replaced(1));
  EXPECT_EQ(replaced(0).shape(), Shape({1, 8, gpt_.config().channels}));
}

TEST_F(RecordedValuesTest, RowsAreMoved) {
  ask(1, RecordedValues::Rows{.first = 4, .last = 5, .from = 1});
  ask(1, RecordedValues::All{});
  values_.fill(interventions_, nullptr);
  const std::int64_t channels = gpt_.config().channels;
  ASSERT_EQ(replaced(0).shape(), Shape({1, 6, channels}));
  for (std::int64_t i = 0; i < 2 * channels; ++i) {
    EXPECT_EQ(replaced(0)[4 * channels + i], replaced(1)[channels + i]);
  }
}

TEST_F(RecordedValuesTest, StopWithinAPass) {
  ask(1, RecordedValues::Mean{});
  const std::atomic<bool> stop{true};
  expect_error(ErrorCode::interrupted, [&] { values_.fill(interventions_, &stop); });
  expect_error(ErrorCode::interrupted, [&] { KeptPass(gpt_, {3, 1, 4}, {}, {}, &stop); });
}

TEST(MemoryBudget, CountsWhatItsSharesHold) {
  MemoryBudget budget(100);
  const auto never = [] { return false; };
  MemoryBudget::Share first, second;
  budget.take(first, 60, never);
  int evictions = 0;
  std::optional<MemoryBudget::Share> stored;
  stored.emplace();
  budget.take(*stored, 30, never);
  budget.take(second, 40, [&] {
    ++evictions;
    stored.reset();
    return true;
  });
  EXPECT_EQ(evictions, 1);
  EXPECT_EQ(budget.held(), 100);
  const auto status_of = [&](std::int64_t bytes) {
    try {
      budget.take(second, bytes, never);
    } catch (const HttpError& error) {
      EXPECT_NE(std::string(error.what()).find("--trace-budget"), std::string::npos);
      return error.status();
    }
    return 0;
  };
  EXPECT_EQ(status_of(1), 429);   // others hold it
  EXPECT_EQ(status_of(61), 413);  // it alone is too much
  EXPECT_EQ(budget.held(), 100);
  first.absorb(std::move(second));
  EXPECT_EQ(first.bytes(), 100);
  EXPECT_EQ(second.bytes(), 0);
  first = {};
  EXPECT_EQ(budget.held(), 0);
}

TEST(MemoryBudget, CountsTheHeapOfADocument) {
  EXPECT_EQ(json_bytes(nullptr), 0);
  EXPECT_EQ(json_bytes(1.5), 0);
  const Json numbers = std::vector<double>(1000, 1.0);
  EXPECT_GE(json_bytes(numbers), 1000 * static_cast<std::int64_t>(sizeof(Json)));
  EXPECT_LT(json_bytes(numbers), 1100 * static_cast<std::int64_t>(sizeof(Json)));
  EXPECT_GE(json_bytes({{"key", std::string(5000, 'x')}, {"more", numbers}}),
            5000 + json_bytes(numbers));
}

}  // namespace
}  // namespace heed::server
