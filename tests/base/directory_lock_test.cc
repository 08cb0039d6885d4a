#include "base/directories.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/expect_error.h"
#include "base/temporary_directory.h"

namespace heed {
namespace {

using testing::expect_error;
using testing::TemporaryDirectory;

TEST(DirectoryLock, IsHeldByOneUntilItEnds) {
  const TemporaryDirectory directory;
  {
    const DirectoryLock first(directory.path());
    expect_error(
        ErrorCode::conflict, [&] { DirectoryLock second(directory.path()); },
        directory.path().string());
  }
  EXPECT_NO_THROW(DirectoryLock(directory.path()));
  expect_error(
      ErrorCode::not_found, [&] { DirectoryLock(directory / "absent"); }, "absent");
}

TEST(DirectoryLock, IsSeenByOthers) {
  const TemporaryDirectory directory;
  EXPECT_EQ(is_locked(directory.path()), false);
  {
    const DirectoryLock lock(directory.path());
    EXPECT_EQ(is_locked(directory.path()), true);
  }
  EXPECT_EQ(is_locked(directory.path()), false);
  EXPECT_EQ(is_locked(directory / "absent"), std::nullopt);
}

// An observer that asks again and again never keeps a writer out.
TEST(DirectoryLock, IsNotDisturbedByObservers) {
  const TemporaryDirectory directory;
  std::atomic<bool> done{false};
  std::thread observer([&] {
    while (!done) is_locked(directory.path());
  });
  for (int i = 0; i < 200; ++i) EXPECT_NO_THROW(DirectoryLock(directory.path()));
  done = true;
  observer.join();
}

}  // namespace
}  // namespace heed
