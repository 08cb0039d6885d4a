#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/expect_error.h"

namespace heed {
namespace {

using testing::expect_error;

// Sets the number of threads for a test.
class WithThreads {
 public:
  explicit WithThreads(int count) { set_thread_count(count); }
  ~WithThreads() { set_thread_count(before_); }

 private:
  int before_ = thread_count();
};

using Ranges = std::set<std::pair<std::int64_t, std::int64_t>>;

Ranges ranges_of(std::int64_t count, std::int64_t grain) {
  Ranges ranges;
  std::mutex mutex;
  parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace(begin, end);
  });
  return ranges;
}

TEST(ParallelRanges, CoverEverythingOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const WithThreads scope(threads);
    for (const std::int64_t count : {0, 1, 2, 7, 100, 1001}) {
      for (const std::int64_t grain : {1, 3, 64, 5000}) {
        const Ranges ranges = ranges_of(count, grain);
        std::int64_t reached = 0;
        for (const auto& [begin, end] : ranges) {
          EXPECT_EQ(begin, reached);
          EXPECT_LT(begin, end);
          reached = end;
        }
        EXPECT_EQ(reached, count);
        EXPECT_LE(ranges.size(), static_cast<std::size_t>(threads));
        EXPECT_EQ(ranges, ranges_of(count, grain)) << "the split is not always the same";
      }
    }
  }
}

TEST(ParallelItems, AreEachDoneOnce) {
  for (const int threads : {1, 2, 5}) {
    const WithThreads scope(threads);
    std::vector<std::atomic<int>> done(1000);
    parallel_items(1000, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
    for (const auto& count : done) EXPECT_EQ(count, 1);
    parallel_items(0, [](std::int64_t) { FAIL(); });
  }
}

TEST(ParallelLoops, PassOnExceptions) {
  for (const int threads : {1, 4}) {
    const WithThreads scope(threads);
    const auto stop = [] { throw Error(ErrorCode::diverged, "not finite"); };
    expect_error(
        ErrorCode::diverged,
        [&] { parallel_ranges(100, 1, [&](std::int64_t, std::int64_t) { stop(); }); },
        "not finite");
    expect_error(
        ErrorCode::diverged,
        [&] {
          parallel_items(100, [&](std::int64_t i) {
            if (i == 50) stop();
          });
        },
        "not finite");
  }
}

TEST(ParallelLoops, InsideOneAnotherStaySerial) {
  const WithThreads scope(4);
  std::atomic<int> total = 0;
  parallel_items(8, [&](std::int64_t) {
    const Ranges inner = ranges_of(100, 1);
    EXPECT_EQ(inner, (Ranges{{0, 100}}));
    parallel_items(10, [&](std::int64_t) { ++total; });
  });
  EXPECT_EQ(total, 80);
}

TEST(Threads, CountMustMakeSense) {
  expect_error(
      ErrorCode::invalid_argument, [] { set_thread_count(0); }, "not 0");
  expect_error(
      ErrorCode::invalid_argument, [] { set_thread_count(-3); }, "-3");
  expect_error(
      ErrorCode::invalid_argument, [] { set_thread_count(5000); }, "5000");
  EXPECT_GE(thread_count(), 1);
}

}  // namespace
}  // namespace heed
