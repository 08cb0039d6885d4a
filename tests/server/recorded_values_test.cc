// What interventions take from recorded passes: one replay of each, and memory that is shared.
#include "server/explorer/recorded_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "base/expect_error.h"
#include "microscope/traces/recorded_pass.h"
#include "server/exchange.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/memory_budget.h"
#include "support/process.h"
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
          "t1",
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

  Transformer transformer_ = heed::testing::small_gpt(40);
  RecordedPass pass_{transformer_, {.source = {}, .target = {3, 1, 4, 1, 5, 9, 2, 6}}};
  RecordedValues values_;
  std::vector<Intervention> interventions_;
  int replays_ = 0;
  int new_tensors_ = 0;
};

TEST_F(RecordedValuesTest, EveryPassIsReplayedOnce) {
  ask(256, RecordedValues::Mean{});
  values_.fill(interventions_, nullptr);
  EXPECT_EQ(replays_, 1);
  const std::vector<Texts> texts{{.target = {3, 1, 4, 1, 5, 9, 2, 6}}};
  for (const std::size_t i : {0U, 1U, 254U, 255U}) {
    EXPECT_EQ(std::get<SetRow>(interventions_[i].change).row,
              mean_row(transformer_, interventions_[i].point, texts));
  }
}

TEST_F(RecordedValuesTest, InterventionsShareTheValuesOfAPoint) {
  ask(60, RecordedValues::All{});
  EXPECT_EQ(new_tensors_, 2);
  values_.fill(interventions_, nullptr);
  EXPECT_EQ(&replaced(0), &replaced(58));
  EXPECT_NE(&replaced(0), &replaced(1));
  EXPECT_EQ(replaced(0).shape(), Shape({1, 8, transformer_.specification().channels}));
}

TEST_F(RecordedValuesTest, RowsAreMoved) {
  ask(1, RecordedValues::Rows{.first = 4, .last = 5, .from = 1});
  ask(1, RecordedValues::All{});
  values_.fill(interventions_, nullptr);
  const std::int64_t channels = transformer_.specification().channels;
  ASSERT_EQ(replaced(0).shape(), Shape({1, 6, channels}));
  for (std::int64_t i = 0; i < 2 * channels; ++i) {
    EXPECT_EQ(replaced(0)[4 * channels + i], replaced(1)[channels + i]);
  }
}

TEST_F(RecordedValuesTest, StopWithinAPass) {
  ask(1, RecordedValues::Mean{});
  const std::atomic<bool> stop{true};
  expect_error(ErrorCode::interrupted, [&] { values_.fill(interventions_, &stop); });
  expect_error(ErrorCode::interrupted, [&] {
    RecordedPass(transformer_, {.source = {}, .target = {3, 1, 4}}, {}, {.stop = &stop});
  });
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

// What malloc hands out while `make` runs, above what it handed out before, at the end.
template <class Make>
std::int64_t allocated_by(const Make& make) {
  const auto before = ::mallinfo2();
  const auto made = make();
  const auto after = ::mallinfo2();
  (void)made;
  return static_cast<std::int64_t>(after.uordblks + after.hblkhd) -
         static_cast<std::int64_t>(before.uordblks + before.hblkhd);
}

TEST(MemoryBudget, CountsAtLeastWhatADocumentTakes) {
  if (heed::testing::is_sanitized) GTEST_SKIP() << "the sanitizer allocates";
  const auto repeated = [](const std::string& element, int count) {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + element;
    return text + "]";
  };
  for (const std::string element :
       {"1", "[1,2]", "[]", "{}", R"({"kind":"swap","from":"t1"})", R"("a")", "[[[]]]",
        R"("a rather long string, which is not within its object")", R"({"a":{"b":[0]}})", "null",
        R"("\"[[[[,,,,")"}) {
    SCOPED_TRACE(element);
    const std::string text = repeated(element, 20'000);
    const std::int64_t taken =
        static_cast<std::int64_t>(text.size()) + allocated_by([&] { return Json::parse(text); });
    EXPECT_GE(document_bytes(text), taken);
    EXPECT_LE(document_bytes(text), 5 * taken);
  }
}

TEST(RequestedLists, StayInRepliesAsTheyWereRequested) {
  const Json list =
      Json::parse(R"([{"kind": "add", "vector": [0.1, -2e-7]}, {"é": "\"x\":null"}])");
  const RequestedList kept = requested_list(list);
  EXPECT_EQ(kept.size, 2U);
  EXPECT_GE(kept.bytes(), static_cast<std::int64_t>(2 * kept.text.size()));
  const OrderedJson document{{"text", "\"x\":null"}, {"x", nullptr}, {"y", nullptr}};
  const Json whole = Json::parse(with_member(document, "x", kept.text));
  EXPECT_EQ(whole["x"], list);
  EXPECT_EQ(whole["text"], document["text"].get<std::string>());
  EXPECT_TRUE(whole["y"].is_null());
  EXPECT_EQ(requested_list(nullptr).text, "[]");
  EXPECT_TRUE(requested_list(nullptr).empty());
}

TEST(RequestedLists, NamesOfPassesAreFoundInTheText) {
  const auto names =
      names_in(R"({"base":"t12","x":["t","tt1","t3x","p4","t5"],"t6":"\"t7\""})", 't');
  EXPECT_THAT(names, ::testing::ElementsAre("t12", "t5", "t6"));
  EXPECT_THAT(names_in("\"t1", 't'), ::testing::IsEmpty());
  EXPECT_THAT(names_in("\"t99999999999999999999999999\"", 't'), ::testing::IsEmpty());
}

}  // namespace
}  // namespace heed::server
