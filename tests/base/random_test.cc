#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/expect_error.h"

namespace heed {
namespace {

using Words = std::array<std::uint32_t, 4>;

// kat_vectors of the Random123 distribution, philox4x32 10.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  constexpr std::uint32_t ones = 0xffffffffU;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(
      philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
      (Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

TEST(RandomStream, ResumesFromAnyPosition) {
  RandomStream whole(7, 3);
  std::vector<std::uint32_t> values(100);
  for (std::uint32_t& value : values) value = whole.next_u32();
  EXPECT_EQ(whole.position(), 100U);
  for (std::uint64_t position = 0; position < 100; ++position) {
    RandomStream resumed(7, 3, position);
    EXPECT_EQ(resumed.next_u32(), values[position]);
    EXPECT_EQ(resumed.position(), position + 1);
  }
}

TEST(RandomStream, ResumesBetweenDrawsOfEveryKind) {
  RandomStream first(7, 3);
  first.next_u32();
  first.normal();
  first.below(10);
  RandomStream second(7, 3, first.position());
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(first.uniform(), second.uniform());
    EXPECT_EQ(first.normal(), second.normal());
    EXPECT_EQ(first.below(1000), second.below(1000));
  }
}

TEST(RandomStream, DiffersBySeedAndStream) {
  const std::uint64_t value = RandomStream(1, 1).next_u64();
  EXPECT_NE(value, RandomStream(2, 1).next_u64());
  EXPECT_NE(value, RandomStream(1, 2).next_u64());
  EXPECT_NE(value, RandomStream(1 + (std::uint64_t{1} << 32), 1).next_u64());
  EXPECT_NE(value, RandomStream(1, 1 + (std::uint64_t{1} << 32)).next_u64());
}

// Means and variances within five standard errors of n draws.
TEST(RandomStream, HasTheStatedMoments) {
  constexpr int n = 200'000;
  RandomStream random(11, 0);
  double uniform_sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  for (int i = 0; i < n; ++i) {
    const double uniform = random.uniform();
    ASSERT_GE(uniform, 0);
    ASSERT_LT(uniform, 1);
    const double normal = random.normal();
    uniform_sum += uniform;
    normal_sum += normal;
    normal_squares += normal * normal;
  }
  const double root = std::sqrt(static_cast<double>(n));
  EXPECT_NEAR(uniform_sum / n, 0.5, 5 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(normal_sum / n, 0.0, 5 / root);
  EXPECT_NEAR(normal_squares / n, 1.0, 5 * std::sqrt(2.0) / root);
}

TEST(RandomStream, BelowIsUniform) {
  constexpr int n = 60'000;
  RandomStream random(5, 0);
  std::array<int, 6> counts{};
  for (int i = 0; i < n; ++i) ++counts.at(random.below(6));
  for (const int count : counts) EXPECT_NEAR(count, n / 6, 5 * std::sqrt(n / 6.0 * 5 / 6));
  EXPECT_EQ(random.below(1), 0U);
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(UINT64_MAX), UINT64_MAX);
  testing::expect_error(
      ErrorCode::internal, [&] { random.below(0); }, "positive");
}

TEST(Permutation, IsABijection) {
  for (const std::uint64_t size : {1, 2, 3, 4, 5, 15, 16, 17, 255, 257, 1000, 65536, 100'003}) {
    const Permutation permutation(size, 9, 1);
    std::vector<bool> seen(size, false);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t value = permutation(i);
      ASSERT_LT(value, size);
      ASSERT_FALSE(seen[value]) << "size " << size << ", value " << value;
      seen[value] = true;
    }
  }
}

TEST(Permutation, DiffersBySeedAndStreamAndShuffles) {
  constexpr std::uint64_t size = 10'000;
  const Permutation first(size, 1, 0);
  const Permutation other_seed(size, 2, 0);
  const Permutation other_stream(size, 1, 1);
  int same_as_index = 0;
  int same_as_seed = 0;
  int same_as_stream = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    same_as_index += first(i) == i ? 1 : 0;
    same_as_seed += first(i) == other_seed(i) ? 1 : 0;
    same_as_stream += first(i) == other_stream(i) ? 1 : 0;
  }
  // One fixed point is expected of a random permutation; ten are a chance of about 1e-7.
  EXPECT_LT(same_as_index, 10);
  EXPECT_LT(same_as_seed, 10);
  EXPECT_LT(same_as_stream, 10);
}

TEST(Permutation, RefusesIndicesOutside) {
  testing::expect_error(
      ErrorCode::internal, [] { Permutation(5, 1, 1)(5); }, "inside");
  testing::expect_error(
      ErrorCode::internal, [] { Permutation(0, 1, 1)(0); }, "inside");
}

}  // namespace
}  // namespace heed
