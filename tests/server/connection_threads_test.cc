#include "server/connection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "server/test_server.h"

namespace heed::server {
namespace {

using testing::eventually;

TEST(ConnectionThreads, StartAsTheyAreNeededAndEndWhenTheyAreNot) {
  ConnectionThreads threads(3);
  EXPECT_EQ(threads.threads(), 0U);
  for (int round = 0; round < 2; ++round) {
    std::latch released(1);
    std::atomic<int> busy{0};
    std::atomic<int> done{0};
    for (int job = 0; job < 5; ++job) {
      threads.enqueue([&] {
        ++busy;
        released.wait();
        --busy;
        ++done;
      });
    }
    EXPECT_TRUE(eventually([&] { return busy.load() == 3; }));
    EXPECT_EQ(threads.threads(), 3U);  // the bound: two jobs wait
    released.count_down();
    EXPECT_TRUE(eventually([&] { return done.load() == 5; }));
    EXPECT_TRUE(eventually([&] { return threads.threads() == 0; }));
  }
  threads.shutdown();
}

TEST(ConnectionThreads, OneAfterAnotherTakesOneThread) {
  ConnectionThreads threads(8);
  for (int job = 0; job < 5; ++job) {
    std::atomic<bool> done{false};
    threads.enqueue([&] { done = true; });
    ASSERT_TRUE(eventually([&] { return done.load(); }));
  }
  EXPECT_LE(threads.threads(), 2U);  // one may not have come back to wait when the next job came
  threads.shutdown();
  EXPECT_EQ(threads.threads(), 0U);
}

TEST(ConnectionThreads, ShuttingDownFinishesWhatWasEnqueued) {
  std::atomic<int> done{0};
  ConnectionThreads threads(2);
  for (int job = 0; job < 20; ++job) {
    threads.enqueue([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++done;
    });
  }
  threads.shutdown();
  EXPECT_EQ(done.load(), 20);
}

}  // namespace
}  // namespace heed::server
