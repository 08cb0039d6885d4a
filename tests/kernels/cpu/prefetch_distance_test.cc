#include "kernels/cpu/prefetch_distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace heed::kernels {
namespace {

constexpr std::int64_t trial =
    static_cast<std::int64_t>(PrefetchDistance::distances.size() * PrefetchDistance::products);

// Products that take 1 ns a byte with one distance, and 1.1 ns with the others.
std::map<std::int64_t, std::int64_t> count_distances(PrefetchDistance& distance,
                                                     std::int64_t fastest, std::int64_t products) {
  std::map<std::int64_t, std::int64_t> counts;
  for (std::int64_t i = 0; i < products; ++i) {
    const std::int64_t ahead = distance.next();
    ++counts[ahead];
    distance.took(ahead, ahead == fastest ? 1e-9 : 1.1e-9);
  }
  return counts;
}

TEST(PrefetchDistance, IsTheFastestOnceEachWasTimed) {
  for (const std::int64_t fastest : PrefetchDistance::distances) {
    PrefetchDistance distance;
    const auto tried = count_distances(distance, fastest, trial);
    ASSERT_EQ(tried.size(), PrefetchDistance::distances.size());
    for (const auto& [ahead, count] : tried) EXPECT_EQ(count, PrefetchDistance::products) << ahead;
    EXPECT_EQ(distance.best(), fastest);
    const auto taken = count_distances(distance, fastest, PrefetchDistance::period);
    EXPECT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken.begin()->first, fastest);
  }
}

TEST(PrefetchDistance, IsTriedAgainFromTimeToTime) {
  PrefetchDistance distance;
  count_distances(distance, 512, trial + PrefetchDistance::period);
  EXPECT_EQ(distance.best(), 512);
  count_distances(distance, 8192, trial);
  EXPECT_EQ(distance.best(), 8192);
}

TEST(PrefetchDistance, IsNotMisledByProductsThatWereInterrupted) {
  PrefetchDistance distance;
  std::int64_t interrupted = 0;
  for (std::int64_t i = 0; i < trial; ++i) {
    const std::int64_t ahead = distance.next();
    const bool fast = ahead == 4096;
    // Ten of those with the best distance take a millisecond a byte.
    const bool stands_still = fast && interrupted < 10;
    if (stands_still) ++interrupted;
    distance.took(ahead, stands_still ? 1e-3 : (fast ? 1e-9 : 1.1e-9));
  }
  EXPECT_EQ(interrupted, 10);
  EXPECT_EQ(distance.best(), 4096);
}

// Others may time products at the same time, and tell of them late.
TEST(PrefetchDistance, IgnoresWhatItDoesNotWaitFor) {
  PrefetchDistance distance;
  for (int i = 0; i < 1000; ++i) distance.took(512, 1e-12);
  distance.took(1234, 1e-12);
  const auto tried = count_distances(distance, 2048, trial - PrefetchDistance::products);
  EXPECT_EQ(tried.count(512), 0U);
  EXPECT_EQ(distance.best(), 512);
  distance.took(8192, 1e-15);
  EXPECT_EQ(distance.best(), 512);
}

}  // namespace
}  // namespace heed::kernels
