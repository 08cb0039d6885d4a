#include "comm/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "comm/local_group.h"

namespace heed {
namespace {

using testing::as_members;
using namespace std::chrono_literals;

WatchOptions options(std::atomic<int>& lost, std::atomic<int>& ended) {
  return {.patience = 0.4, .lost = [&](const std::string&) { ++lost; }, .ended = [&] { ++ended; }};
}

// Whatever they compute: the watch has a thread of its own.
TEST(Watch, BlamesNobodyWhoIsSlow) {
  std::atomic<int> lost{0}, ended{0};
  as_members(3, [&](Group& group) {
    const Watch watch(group, options(lost, ended));
    EXPECT_EQ(watch.problem(), "");
    if (group.rank() == 1) std::this_thread::sleep_for(1s);
    barrier(group);
  });
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(ended, 0);
}

// Nor for the order in which they leave.
TEST(Watch, LetsMembersLeave) {
  std::atomic<int> lost{0}, ended{0};
  for (const int last : {0, 2}) {
    as_members(3, [&](Group& group) {
      const Watch watch(group, options(lost, ended));
      if (group.rank() == last) std::this_thread::sleep_for(600ms);
    });
  }
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(ended, 0);
}

TEST(Watch, OneSpeaks) {
  for (const int first : {0, 1, 2}) {
    std::atomic<int> lost{0}, ended{0}, spoke{0};
    as_members(3, [&](Group& group) {
      Watch watch(group, options(lost, ended));
      if (group.rank() != first) std::this_thread::sleep_for(200ms);
      if (watch.may_speak()) {
        ++spoke;
        EXPECT_EQ(group.rank(), first);
      }
      barrier(group);
    });
    EXPECT_EQ(spoke, 1);
    EXPECT_EQ(ended, 2);  // the others are told
    EXPECT_EQ(lost, 0);
  }
}

// Of those that fail at the same time.
TEST(Watch, OneOfManySpeaks) {
  std::atomic<int> lost{0}, ended{0}, spoke{0};
  as_members(4, [&](Group& group) {
    Watch watch(group, options(lost, ended));
    barrier(group);
    if (watch.may_speak()) ++spoke;
    barrier(group);
  });
  EXPECT_EQ(spoke, 1);
}

TEST(Watch, AloneSpeaks) {
  std::atomic<int> lost{0}, ended{0};
  const auto group = single_group();
  Watch watch(*group, options(lost, ended));
  EXPECT_EQ(watch.problem(), "");
  EXPECT_TRUE(watch.may_speak());
}

TEST(MeetingPoint, KnowsItsCallers) {
  MeetingPoint point;
  const Descriptor listener = listen_anywhere(point);
  ASSERT_TRUE(static_cast<bool>(listener));
  const MeetingPoint told = MeetingPoint::parse(point.text());
  EXPECT_EQ(told.port, point.port);
  EXPECT_EQ(told.addresses, point.addresses);
  MeetingPoint wrong = told;
  wrong.token = "another";
  std::thread callers([&] {
    const Deadline deadline = std::chrono::steady_clock::now() + 5s;
    EXPECT_FALSE(static_cast<bool>(call(wrong, {1, "a stranger"}, deadline)));
    Descriptor connection = call(told, {2, "host 7, pid 8"}, deadline);
    ASSERT_TRUE(static_cast<bool>(connection));
    EXPECT_TRUE(send_byte(connection, 'x'));
  });
  const auto caller = accept_caller(listener, point, std::chrono::steady_clock::now() + 5s);
  callers.join();
  ASSERT_TRUE(caller.has_value());
  EXPECT_EQ(caller->who.rank, 2);
  EXPECT_EQ(caller->who.name, "host 7, pid 8");
  EXPECT_EQ(receive_bytes(caller->connection), "x");
  EXPECT_EQ(receive_bytes(caller->connection), std::nullopt);  // it has hung up
  EXPECT_FALSE(accept_caller(listener, point, std::chrono::steady_clock::now() + 10ms));
}

}  // namespace
}  // namespace heed
