#include "scoring/bootstrap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/expect_error.h"
#include "base/threads.h"
#include "scoring/bleu.h"

namespace heed::scoring {
namespace {

using Sentences = std::vector<std::string>;

// The numbers of numpy.random.default_rng, NumPy 1.24.2.
TEST(Pcg64, GivesTheNumbersOfNumpy) {
  Pcg64 zero(0);
  EXPECT_EQ(zero.next_u64(), 0xa30febcfd9c2825fU);
  EXPECT_EQ(zero.next_u64(), 0x4510bdf882d9d721U);
  EXPECT_EQ(zero.next_u64(), 0x0a7d3da94ecde8b8U);
  Pcg64 large((std::uint64_t{1} << 63) + 12345);
  EXPECT_EQ(large.next_u64(), 0x7e82ff06e5a17e1cU);
  EXPECT_EQ(large.next_u64(), 0x9375de147f211adbU);
}

// default_rng(12345): choice(1000, 8), and integers(2**31 + 1), where half of the draws, the
// first one too, are rejected.
TEST(Pcg64, DrawsBelowABoundAsNumpy) {
  Pcg64 thousand(12345);
  for (const std::uint32_t expected : {699, 227, 788, 316, 204, 797, 642, 676}) {
    EXPECT_EQ(thousand.below(1000), expected);
  }
  Pcg64 many(12345);
  for (const std::uint32_t expected :
       {488200390U, 1693606511U, 680233354U, 438466540U, 1712329281U}) {
    EXPECT_EQ(many.below((1U << 31) + 1), expected);
  }
  EXPECT_EQ(many.below(1), 0U);
}

SentenceStatistics statistics_of(const Sentences& hypotheses, const Sentences& references) {
  return Bleu().statistics({hypotheses, std::vector<Sentences>{references}});
}

// A hundred sentences of six words; `wrong` of every ten have a word that no reference has.
Sentences system_with_errors(int wrong) {
  Sentences sentences;
  for (int i = 0; i < 100; ++i) {
    sentences.push_back(i % 10 < wrong ? "a b c wrong e f" : "a b c d e f");
  }
  return sentences;
}

TEST(Bootstrap, FindsASystemThatIsWorseAndNoneThatIsTheSame) {
  const Sentences references = system_with_errors(0);
  const std::vector<SentenceStatistics> systems{statistics_of(system_with_errors(2), references),
                                                statistics_of(system_with_errors(7), references)};
  const std::vector<SystemScore> scores = paired_bootstrap(Bleu(), systems);
  EXPECT_FALSE(scores[0].p_value.has_value());
  EXPECT_NEAR(*scores[1].p_value, 1.0 / 1001, 1e-12);  // the least that 1,000 samples can show
  EXPECT_LT(scores[1].score, scores[0].score);
  EXPECT_NEAR(scores[0].interval.mean, scores[0].score, scores[0].interval.half_width);
  EXPECT_GT(scores[0].interval.half_width, 0);
}

// As many errors, in other sentences: the corpus scores are equal, the sentences are not.
TEST(Bootstrap, DoesNotTellApartSystemsOfEqualQuality) {
  const Sentences references = system_with_errors(0);
  Sentences shifted = system_with_errors(3);
  std::rotate(shifted.begin(), shifted.begin() + 5, shifted.end());
  const std::vector<SentenceStatistics> systems{statistics_of(system_with_errors(3), references),
                                                statistics_of(shifted, references)};
  const std::vector<SystemScore> scores = paired_bootstrap(Bleu(), systems);
  EXPECT_EQ(scores[0].score, scores[1].score);
  EXPECT_GT(*scores[1].p_value, 0.3);
}

TEST(Bootstrap, IntervalLeavesAFortiethOutOnEachSide) {
  std::vector<double> scores(80);
  std::iota(scores.begin(), scores.end(), 1.0);
  std::ranges::reverse(scores);
  const Interval interval = interval_of(scores);
  EXPECT_EQ(interval.mean, 40.5);
  EXPECT_EQ(interval.half_width, (78.0 - 3.0) / 2);
}

TEST(Bootstrap, PValueCountsSamplesThatDifferMoreThanTheCorpus) {
  const std::vector<double> baseline{10, 10, 10, 10};
  const std::vector<double> system{10, 11, 12, 17};  // differences 0, 1, 2, 7; mean 2.5
  EXPECT_EQ(p_value(baseline, system, 1), 2.0 / 5);
  EXPECT_EQ(p_value(baseline, system, -1), 2.0 / 5);
  EXPECT_EQ(p_value(baseline, system, 4.5), 1.0 / 5);
}

TEST(Bootstrap, DoesNotTellASystemFromItself) {
  const SentenceStatistics system = statistics_of(system_with_errors(3), system_with_errors(0));
  const std::vector<SystemScore> scores =
      paired_bootstrap(Bleu(), std::vector<SentenceStatistics>{system, system});
  EXPECT_EQ(*scores[1].p_value, 1);
}

TEST(Bootstrap, DoesNotDependOnThreads) {
  const std::vector<SentenceStatistics> systems{
      statistics_of(system_with_errors(3), system_with_errors(0))};
  const int threads = thread_count();
  set_thread_count(1);
  const auto one = resampled_scores(Bleu(), systems);
  set_thread_count(3);
  const auto three = resampled_scores(Bleu(), systems);
  set_thread_count(threads);
  EXPECT_EQ(one, three);
}

TEST(Bootstrap, StopsAndRefuses) {
  const std::vector<SentenceStatistics> systems{
      statistics_of(system_with_errors(3), system_with_errors(0))};
  const std::atomic<bool> stop = true;
  testing::expect_error(
      ErrorCode::interrupted, [&] { resampled_scores(Bleu(), systems, {.stop = &stop}); },
      "0 of 1000 samples");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { resampled_scores(Bleu(), systems, {.samples = 0}); },
      "at least 1 sample, not 0");
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { resampled_scores(Bleu(), {}); }, "no systems");
  const std::vector<SentenceStatistics> unequal{systems[0], statistics_of({"a"}, {"a"})};
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { resampled_scores(Bleu(), unequal); },
      "one has 100, another 1");
}

}  // namespace
}  // namespace heed::scoring
