#include "train/batch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/expect_error.h"

namespace heed {
namespace {

BatchOrder stream_order(std::int64_t tokens, std::int64_t length, std::uint64_t seed) {
  TrainSettings settings;
  settings.sequence_length = length;
  settings.seed = seed;
  return {TokenList(std::vector<std::int32_t>(static_cast<std::size_t>(tokens))), -1, settings};
}

std::vector<std::int64_t> take_epoch(const BatchOrder& order, std::int64_t epoch) {
  DataPosition position{.epoch = epoch};
  std::vector<std::int64_t> starts;
  for (std::int64_t i = 0; i < order.windows(epoch); ++i) starts.push_back(order.next(position));
  EXPECT_EQ(position, (DataPosition{epoch, order.windows(epoch)}));
  return starts;
}

TEST(BatchOrder, VisitsEachWindowOfAnEpochOnce) {
  constexpr std::int64_t tokens = 1003;
  constexpr std::int64_t length = 8;
  const BatchOrder order = stream_order(tokens, length, 5);
  for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
    const auto starts = take_epoch(order, epoch);
    const std::set<std::int64_t> distinct(starts.begin(), starts.end());
    ASSERT_EQ(distinct.size(), starts.size());
    // They tile the stream: neighbours are `length` apart and the ends miss less than a window.
    std::int64_t expected = *distinct.begin();
    EXPECT_LT(expected, length);
    for (const std::int64_t start : distinct) {
      EXPECT_EQ(start, expected);
      expected += length;
    }
    EXPECT_LE(expected, tokens - 1);
    EXPECT_GT(expected + length, tokens - 1);
  }
}

TEST(BatchOrder, ShufflesEveryEpochAnew) {
  const BatchOrder order = stream_order(1003, 8, 5);
  const auto first = take_epoch(order, 0);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_NE(first, take_epoch(order, 1));
  EXPECT_EQ(first, take_epoch(stream_order(1003, 8, 5), 0));
  EXPECT_NE(first, take_epoch(stream_order(1003, 8, 6), 0));
}

TEST(BatchOrder, GoesOnIntoTheNextEpoch) {
  const BatchOrder order = stream_order(100, 8, 1);
  DataPosition position{.epoch = 0, .index = order.windows(0)};
  order.next(position);
  EXPECT_EQ(position, (DataPosition{1, 1}));
}

TEST(BatchOrder, BeginsAWindowWithEachDocument) {
  // Documents of 3, 1, 9 and 2 tokens, each ended by the mark 0.
  const TokenList tokens({1, 1, 1, 0, 2, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0, 4, 4, 0});
  TrainSettings settings;
  settings.sequence_length = 4;
  settings.windows = Windows::documents;
  auto starts = take_epoch(BatchOrder(tokens, 0, settings), 0);
  EXPECT_FALSE(std::is_sorted(starts.begin(), starts.end()));
  std::sort(starts.begin(), starts.end());
  // At each mark but the last, which nothing follows, and within the long document every 4 tokens.
  EXPECT_EQ(starts, (std::vector<std::int64_t>{0, 3, 5, 9, 13, 15}));
}

TEST(BatchOrder, LeavesTheMarkOutOfHalfTheWindowsOfPrompts) {
  std::vector<std::int32_t> list;
  for (int document = 0; document < 200; ++document) list.insert(list.end(), {1, 1, 1, 0});
  const TokenList tokens(list);
  TrainSettings settings;
  settings.sequence_length = 4;
  settings.windows = Windows::prompts;
  const BatchOrder order(tokens, 0, settings);
  std::vector<bool> before;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    auto starts = take_epoch(order, epoch);
    std::sort(starts.begin(), starts.end());
    ASSERT_EQ(starts.size(), 200u);
    std::vector<bool> bare;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::int64_t mark = i == 0 ? 0 : 4 * static_cast<std::int64_t>(i) - 1;
      bare.push_back(starts[i] == mark + 1);
      ASSERT_TRUE(bare.back() || starts[i] == mark) << starts[i];
    }
    EXPECT_NEAR(std::count(bare.begin(), bare.end(), true), 100, 1);
    EXPECT_NE(bare, before);
    before = bare;
  }
}

TEST(BatchOrder, NeedsOneWindow) {
  testing::expect_error(
      ErrorCode::invalid_argument, [] { stream_order(8, 8, 1); }, "8 tokens", "9");
  DataPosition position;
  EXPECT_EQ(stream_order(9, 8, 1).next(position), 0);
}

}  // namespace
}  // namespace heed
