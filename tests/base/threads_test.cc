#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
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

TEST(ParallelShares, CoverEverythingOnce) {
  for (const int threads : {1, 2, 3, 8, 80}) {
    const WithThreads scope(threads);
    for (const std::int64_t count : {0, 1, 7, 100, 1001}) {
      for (const std::int64_t unit : {1, 4, 64}) {
        std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
        parallel_shares(count, 3, unit, [&](std::int64_t begin, std::int64_t end) {
          ASSERT_LT(begin, end);
          for (std::int64_t i = begin; i < end; ++i) ++done[static_cast<std::size_t>(i)];
        });
        for (const auto& times : done) ASSERT_EQ(times, 1) << count << " by " << threads;
      }
    }
  }
}

TEST(ParallelShares, EndOnceInEachThread) {
  for (const int threads : {2, 3, 8}) {
    const WithThreads scope(threads);
    std::vector<std::atomic<int>> ends(static_cast<std::size_t>(threads));
    std::atomic<std::int64_t> done = 0;
    parallel_shares(
        100, 1, 4, [&](std::int64_t begin, std::int64_t end) { done += end - begin; },
        [&](std::int64_t thread, std::int64_t all) {
          ASSERT_EQ(all, threads);
          ++ends[static_cast<std::size_t>(thread)];
        });
    EXPECT_EQ(done, 100);
    for (const auto& times : ends) EXPECT_EQ(times, 1);
  }
}

// The first thread waits until all but its own piece is done, which the other must have taken from
// its range. Where the system does not let the other begin within a round, another one is tried.
TEST(ParallelShares, TakeWhatASlowThreadLeaves) {
  const WithThreads scope(2);
  const std::int64_t count = 64;
  const std::thread::id caller = std::this_thread::get_id();
  bool other_took_all = false;
  for (int round = 0; round < 100 && !other_took_all; ++round) {
    std::atomic<std::int64_t> done = 0;
    std::atomic<bool> waits = false;  // so that the other is not through before
    parallel_shares(count, 1, 1, [&](std::int64_t begin, std::int64_t end) {
      const auto latest = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
      const auto in_time = [&] { return std::chrono::steady_clock::now() < latest; };
      if (std::this_thread::get_id() != caller) {
        while (!waits && in_time()) std::this_thread::yield();
      } else if (!waits.exchange(true)) {
        while (done < count - end && in_time()) std::this_thread::yield();
        other_took_all = begin == 0 && done == count - end;
      }
      done += end - begin;
    });
    ASSERT_EQ(done, count);
  }
  if (!other_took_all) GTEST_SKIP() << "the other thread got no processor";
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
        [&] { parallel_shares(100, 1, 1, [&](std::int64_t, std::int64_t) { stop(); }); },
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
