#include "base/directories.h"

#include <gtest/gtest.h>

#include "base/environment_variable.h"

namespace heed {
namespace {

using testing::EnvironmentVariable;

TEST(CacheDirectory, IsHeedsOwnThenXdgsThenOfTheHome) {
  const EnvironmentVariable home("HOME", "/home/someone");
  const EnvironmentVariable own("HEED_CACHE", nullptr);
  const EnvironmentVariable xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(cache_directory("models"), "/home/someone/.cache/heed/models");
  const EnvironmentVariable set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(cache_directory("models"), "/cache/heed/models");
  const EnvironmentVariable chosen("HEED_CACHE", "/mine");
  EXPECT_EQ(cache_directory("models"), "/mine/models");
}

TEST(CacheDirectory, IgnoresRelativeValues) {
  const EnvironmentVariable own("HEED_CACHE", "");
  const EnvironmentVariable xdg("XDG_CACHE_HOME", "relative");
  const EnvironmentVariable home("HOME", "./here");
  EXPECT_EQ(cache_directory("models"), "");
}

}  // namespace
}  // namespace heed
