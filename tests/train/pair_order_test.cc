#include "train/pair_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/temporary_directory.h"
#include "tokenizer/train_byte_pair.h"

namespace heed {
namespace {

using testing::TemporaryDirectory;

// 300 pairs of 1 to 30 words on either side.
class PairOrderTest : public ::testing::Test {
 protected:
  PairOrderTest() {
    std::string source, target;
    for (int i = 0; i < 300; ++i) {
      for (int word = 0; word <= i * 7 % 30; ++word) source += "ab ";
      for (int word = 0; word <= i * 11 % 30; ++word) target += "cd ";
      source += "x\n";
      target += "y\n";
    }
    write_text_file(directory_ / "source", source);
    write_text_file(directory_ / "target", target);
    text_.emplace(std::vector{directory_ / "source", directory_ / "target"});
    tokenizer_ =
        learn_joint_vocabulary(text_->both_sides(0, text_->size()), {.vocabulary_size = 270});
    data_.emplace(*text_, PairRange{0, text_->size()},
                  TranslationTokenizers{.source = tokenizer_, .target = tokenizer_},
                  TokenizeOptions{});
  }

  std::vector<std::vector<std::int64_t>> take_epoch(PairOrder order, std::int64_t epoch) const {
    DataPosition position{.epoch = epoch};
    std::vector<std::vector<std::int64_t>> batches;
    const std::int64_t count = order.batches(epoch);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto pairs = order.next(position);
      batches.emplace_back(pairs.begin(), pairs.end());
    }
    EXPECT_EQ(position, (DataPosition{epoch, count}));
    return batches;
  }

  TemporaryDirectory directory_;
  std::optional<PairText> text_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<PairData> data_;
};

constexpr std::int64_t order_budget = 200;

TEST_F(PairOrderTest, VisitsEachPairOnceWithinTheBudget) {
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<std::int64_t> seen;
    for (const auto& batch : take_epoch({*data_, order_budget, 3}, epoch)) {
      for (const PairSide side : {PairSide::source, PairSide::target}) {
        std::int64_t tokens = 0;
        for (const std::int64_t pair : batch) tokens += data_->length(side, pair);
        EXPECT_LE(tokens, order_budget);
      }
      for (const std::int64_t pair : batch) EXPECT_TRUE(seen.insert(pair).second);
    }
    EXPECT_EQ(std::ssize(seen), data_->size());
  }
}

// No budget is left unused but for what the next pair needs: few batches could be fewer.
TEST_F(PairOrderTest, FillsBatchesWithSimilarLengths) {
  const auto batches = take_epoch({*data_, order_budget, 3}, 0);
  const std::int64_t most =
      std::max(data_->tokens(PairSide::source), data_->tokens(PairSide::target));
  EXPECT_LT(std::ssize(batches), 2 * most / order_budget);
  const auto longer = [&](std::int64_t pair) {
    return std::max(data_->length(PairSide::source, pair), data_->length(PairSide::target, pair));
  };
  double spread = 0, all = 0;
  for (const auto& batch : batches) {
    const auto [shortest, longest] = std::ranges::minmax(batch, {}, longer);
    spread += static_cast<double>(longer(longest) - longer(shortest));
    all += 1;
  }
  // A bucket is 8 wide, and a batch crosses at most a few borders; unsorted, the spread is
  // above 20.
  EXPECT_LT(spread / all, 10);
}

TEST_F(PairOrderTest, ShufflesEveryEpochAnew) {
  const auto first = take_epoch({*data_, order_budget, 3}, 0);
  EXPECT_EQ(first, take_epoch({*data_, order_budget, 3}, 0));
  EXPECT_NE(first, take_epoch({*data_, order_budget, 4}, 0));
  const auto second = take_epoch({*data_, order_budget, 3}, 1);
  // Neither the batches nor what they hold are those of before.
  std::set<std::vector<std::int64_t>> batches(first.begin(), first.end());
  int again = 0;
  for (const auto& batch : second) again += batches.contains(batch) ? 1 : 0;
  EXPECT_LT(again, std::ssize(second) / 4);
  const auto length = [&](const auto& batch) {
    return data_->length(PairSide::source, batch.front());
  };
  std::vector<std::int64_t> lengths;
  for (const auto& batch : first) lengths.push_back(length(batch));
  EXPECT_FALSE(std::ranges::is_sorted(lengths));
}

TEST_F(PairOrderTest, ContinuesFromAnyPosition) {
  PairOrder order(*data_, order_budget, 3);
  DataPosition position;
  for (int i = 0; i < 2 * order.batches(0); ++i) {
    const DataPosition before = position;
    const auto pairs = order.next(position);
    const std::vector<std::int64_t> expected(pairs.begin(), pairs.end());
    DataPosition again = before;
    PairOrder other(*data_, order_budget, 3);
    const auto resumed = other.next(again);
    EXPECT_EQ(std::vector<std::int64_t>(resumed.begin(), resumed.end()), expected);
    EXPECT_EQ(again, position);
  }
  EXPECT_EQ(position.epoch, 1);
}

TEST_F(PairOrderTest, RowsShiftTheTarget) {
  PairRows rows;
  const std::vector<std::int64_t> pairs{4, 250};
  rows.read(*data_, pairs, 1);
  const PairBatch batch = rows.batch();
  ASSERT_EQ(batch.source.count(), 2);
  EXPECT_EQ(batch.source.rows(),
            data_->length(PairSide::source, 4) + data_->length(PairSide::source, 250));
  EXPECT_EQ(rows.targets(), batch.target.rows());
  for (std::size_t b = 0; b < 2; ++b) {
    const std::int64_t begin = batch.target.row_starts[b], end = batch.target.row_starts[b + 1];
    EXPECT_EQ(batch.target.tokens[static_cast<std::size_t>(begin)], 1);
    EXPECT_EQ(batch.next[static_cast<std::size_t>(end - 1)], *tokenizer_->end_of_text());
    for (std::int64_t row = begin + 1; row < end; ++row) {
      EXPECT_EQ(batch.target.tokens[static_cast<std::size_t>(row)],
                batch.next[static_cast<std::size_t>(row - 1)]);
    }
    const std::vector<std::int32_t> line =
        tokenizer_->encode(text_->line(PairSide::target, pairs[b]));
    EXPECT_TRUE(std::equal(line.begin(), line.end(), batch.next.begin() + begin,
                           batch.next.begin() + end - 1));
  }
}

}  // namespace
}  // namespace heed
