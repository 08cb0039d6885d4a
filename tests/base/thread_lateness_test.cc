#include "base/thread_pool.h"

#include <gtest/gtest.h>

namespace heed {
namespace {

using Clock = RestingThreads::Clock;
using Duration = RestingThreads::Duration;
using std::chrono::milliseconds;

// Loops of a millisecond each, on two threads, of which the second may be suspended.
class Loops {
 public:
  void compute(int count) {
    for (int loop = 0; loop < count; ++loop) {
      now_ += milliseconds(1);
      threads_.add_loop(milliseconds(1));
    }
  }
  void compute_late(Duration suspended) {
    compute(1);
    now_ += suspended;
    threads_.was_late(1, 2, suspended, now_);
  }
  // How long the thread rests from now on.
  Duration rest() {
    const Clock::time_point begin = now_;
    while (threads_.rests(1, now_)) now_ += milliseconds(1);
    return now_ - begin;
  }
  bool rests() { return threads_.rests(1, now_); }

 private:
  RestingThreads threads_{2};
  Clock::time_point now_{std::chrono::hours(1)};
};

TEST(RestingThreads, RestAfterDelaysThatCostMoreThanTheyAdd) {
  Loops loops;
  loops.compute(10);
  loops.compute_late(milliseconds(3));
  EXPECT_FALSE(loops.rests());
  loops.compute_late(milliseconds(3));
  EXPECT_TRUE(loops.rests());
  EXPECT_EQ(loops.rest(), RestingThreads::min_rest);
  EXPECT_FALSE(loops.rests());
}

TEST(RestingThreads, MayBeLateNowAndThen) {
  Loops loops;
  for (int round = 0; round < 100; ++round) {
    loops.compute_late(milliseconds(3));
    loops.compute(20);
    ASSERT_FALSE(loops.rests()) << round;
  }
}

TEST(RestingThreads, RestLongerEachTimeThatTheyAreLateAgain) {
  Loops loops;
  loops.compute_late(milliseconds(6));
  Duration expected = RestingThreads::min_rest;
  for (int round = 0; round < 10; ++round) {
    ASSERT_EQ(loops.rest(), expected);
    loops.compute_late(milliseconds(2));  // on trial: less than what is forgiven before
    ASSERT_TRUE(loops.rests());
    expected = std::min(2 * expected, RestingThreads::max_rest);
  }
  loops.rest();
  loops.compute(2000);  // on time
  loops.compute_late(milliseconds(6));
  EXPECT_EQ(loops.rest(), RestingThreads::min_rest);
}

TEST(RestingThreads, AreCountedAndOthersGoOn) {
  RestingThreads threads(4);
  const Clock::time_point now{std::chrono::hours(1)};
  threads.was_late(2, 4, milliseconds(6), now);
  EXPECT_EQ(threads.resting(), 1);
  EXPECT_FALSE(threads.rests(1, now));
  EXPECT_TRUE(threads.rests(2, now));
  EXPECT_FALSE(threads.rests(3, now));
  EXPECT_FALSE(threads.rests(2, now + RestingThreads::min_rest));
  EXPECT_EQ(threads.resting(), 0);
}

}  // namespace
}  // namespace heed
