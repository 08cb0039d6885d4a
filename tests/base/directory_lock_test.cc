#include "base/directory_lock.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace heed
