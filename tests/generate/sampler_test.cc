#include "generate/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/expect_error.h"
#include "base/random.h"

namespace heed {
namespace {

using testing::expect_error;

constexpr float infinity = std::numeric_limits<float>::infinity();

// Nothing but the plain distribution.
SamplingOptions plain() { return SamplingOptions::unmodified(); }

std::vector<float> random_logits(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed, 1);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = static_cast<float>(3.0 * random.normal());
  return logits;
}

// Logits of given probabilities.
std::vector<float> logits_of(std::initializer_list<double> probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

std::vector<std::int32_t> kept_tokens(const std::vector<Candidate>& candidates) {
  std::vector<std::int32_t> tokens;
  for (const Candidate& candidate : candidates) {
    if (candidate.kept()) tokens.push_back(candidate.token);
  }
  return tokens;
}

using ::testing::ElementsAre;

TEST(Sampler, TopOneIsGreedyAndSoIsTemperatureZero) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto logits = random_logits(1000, seed);
    const auto likeliest =
        static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    SamplingOptions top_one = plain();
    top_one.top_k = 1;
    top_one.seed = seed;
    EXPECT_EQ(Sampler(top_one).sample(logits, {}), likeliest);
    EXPECT_EQ(Sampler({.temperature = 0.0}).sample(logits, {}), likeliest);
  }
}

TEST(Sampler, TheLowestIdWinsAmongEquals) {
  const std::vector<float> logits{1.0F, 2.0F, 2.0F, 2.0F, 0.0F};
  EXPECT_EQ(Sampler({.temperature = 0}).sample(logits, {}), 1);
}

TEST(Sampler, DrawsEachTokenAsOftenAsItsProbabilitySays) {
  const auto logits = logits_of({0.5, 0.25, 0.15, 0.1});
  Sampler sampler(plain());
  std::map<std::int32_t, int> counts;
  constexpr int draws = 40'000;
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits, {})];
  // Five standard deviations of a frequency are below 0.0125.
  EXPECT_NEAR(counts[0], 0.5 * draws, 0.0125 * draws);
  EXPECT_NEAR(counts[1], 0.25 * draws, 0.0125 * draws);
  EXPECT_NEAR(counts[2], 0.15 * draws, 0.0125 * draws);
  EXPECT_NEAR(counts[3], 0.1 * draws, 0.0125 * draws);
}

TEST(Sampler, IsAFunctionOfItsSeed) {
  const auto draw_many = [](std::uint64_t seed) {
    Sampler sampler({.temperature = 1.3, .seed = seed});
    std::vector<std::int32_t> tokens;
    for (std::uint64_t i = 0; i < 200; ++i) {
      tokens.push_back(sampler.sample(random_logits(300, i), tokens));
    }
    return tokens;
  };
  EXPECT_EQ(draw_many(5), draw_many(5));
  EXPECT_NE(draw_many(5), draw_many(6));
}

TEST(Sampler, DrawsOnlyWhatTheFiltersKeep) {
  const SamplingOptions options{.temperature = 5.0, .top_k = 30, .top_p = 0.9, .min_p = 0.02};
  const auto logits = random_logits(500, 9);
  const auto kept = kept_tokens(trace_candidates(logits, options, {}));
  ASSERT_LT(kept.size(), 30U);
  Sampler sampler(options);
  for (int i = 0; i < 500; ++i) {
    EXPECT_THAT(kept, ::testing::Contains(sampler.sample(logits, {})));
  }
}

TEST(Filters, KeepWhatTheirDefinitionsSay) {
  const auto logits = logits_of({0.1, 0.4, 0.05, 0.3, 0.15});  // by rank: 1, 3, 4, 0, 2
  SamplingOptions options = plain();
  options.top_k = 2;
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1, 3));
  options = plain();
  options.top_p = 0.75;  // 0.4 + 0.3 do not reach it, 0.4 + 0.3 + 0.15 do
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1, 3, 4));
  options.top_p = 0.0;  // never none
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1));
  options = plain();
  options.min_p = 0.3;  // of 0.4: 0.12
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1, 3, 4));
  options.min_p = 1.0;
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1));
}

TEST(Filters, TopNSigmaKeepsLogitsNearTheLargest) {
  // Without the forbidden token: mean 2, variance (4 + 1 + 1 + 4) / 4, deviation 1.58.
  const std::vector<float> logits{1, 4, -infinity, 3, 0};
  SamplingOptions options = plain();
  options.top_n_sigma = 0.5;
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1));
  options.top_n_sigma = 1;
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1, 3));
  options.temperature = 50;
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(1, 3));
  options.top_n_sigma = 2;
  const auto candidates = trace_candidates(logits, options, {});
  EXPECT_THAT(kept_tokens(candidates), ElementsAre(1, 3, 0));
  EXPECT_EQ(candidates[3].removed_by, SamplingStage::top_n_sigma);
  EXPECT_NEAR(candidates[0].probability(SamplingStage::top_n_sigma),
              1 / (1 + std::exp(-1) + std::exp(-3)), 1e-7);
  options.top_n_sigma = 0;
  EXPECT_EQ(kept_tokens(trace_candidates(logits, options, {})).size(), 5U);
  const std::vector<float> equal{2, 2, 2};
  options.top_n_sigma = 1;
  EXPECT_EQ(kept_tokens(trace_candidates(equal, options, {})).size(), 3U);
}

TEST(Filters, TopPLooksAtWhatTopKLeftAndBothBeforeTheTemperature) {
  const auto logits = logits_of({0.4, 0.3, 0.2, 0.1});
  SamplingOptions options = plain();
  options.top_k = 2;
  options.top_p = 0.55;  // 0.4 / 0.7 reach it alone; 0.4 would not
  options.temperature = 100.0;
  EXPECT_THAT(kept_tokens(trace_candidates(logits, options, {})), ElementsAre(0));
}

TEST(Trace, ProbabilitiesSumToOneAfterEveryStage) {
  const SamplingOptions options{.repeat_penalty = 1.2, .presence_penalty = 0.3};
  const std::vector<std::int32_t> history{3, 5, 3};
  const auto candidates = trace_candidates(random_logits(400, 2), options, history);
  ASSERT_EQ(candidates.size(), 400U);
  for (std::size_t stage = 0; stage < sampling_stage_count; ++stage) {
    double sum = 0;
    for (const Candidate& candidate : candidates) sum += candidate.probability_after[stage];
    EXPECT_NEAR(sum, 1.0, 1e-12) << sampling_stage_name(static_cast<SamplingStage>(stage));
  }
}

TEST(Trace, TellsWhichStageRemovedAToken) {
  const auto logits = logits_of({0.4, 0.3, 0.15, 0.1, 0.05});
  const SamplingOptions options{.temperature = 0.5, .top_k = 4, .top_p = 0.85, .min_p = 0.5};
  const auto candidates = trace_candidates(logits, options, {});
  using enum SamplingStage;
  EXPECT_EQ(candidates[0].removed_by, model);
  EXPECT_EQ(candidates[1].removed_by, model);
  EXPECT_EQ(candidates[2].removed_by, min_p);
  EXPECT_EQ(candidates[3].removed_by, top_p);
  EXPECT_EQ(candidates[4].removed_by, top_k);
  EXPECT_NEAR(candidates[0].probability(model), 0.4, 1e-7);
  EXPECT_NEAR(candidates[0].probability(top_k), 0.4 / 0.95, 1e-7);
  EXPECT_NEAR(candidates[0].probability(top_p), 0.4 / 0.85, 1e-7);
  EXPECT_NEAR(candidates[0].probability(min_p), 0.4 / 0.7, 1e-7);
  EXPECT_NEAR(candidates[0].probability(temperature), 0.16 / 0.25, 1e-7);
  EXPECT_NEAR(candidates[0].scaled_logit, 2 * std::log(0.4), 1e-6);
  EXPECT_EQ(candidates[3].probability(top_p), 0.0);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(candidates[i].rank, static_cast<std::int64_t>(i) + 1);
  }
}

TEST(Trace, GreedyLeavesOne) {
  const auto candidates = trace_candidates(logits_of({0.3, 0.5, 0.2}), {.temperature = 0.0}, {});
  EXPECT_THAT(kept_tokens(candidates), ElementsAre(1));
  EXPECT_EQ(candidates[0].probability(SamplingStage::temperature), 1.0);
  EXPECT_EQ(candidates[1].removed_by, SamplingStage::temperature);
}

double penalized_logit(const SamplingOptions& options, float logit, int occurrences) {
  const std::vector<float> logits{logit, 0.0F, 0.5F};
  const std::vector<std::int32_t> history(static_cast<std::size_t>(occurrences), 0);
  for (const Candidate& candidate : trace_candidates(logits, options, history)) {
    if (candidate.token == 0) return candidate.penalized_logit;
  }
  return 0;
}

TEST(Penalties, TakeFromTheLogitsOfRecentTokens) {
  SamplingOptions options = plain();
  options.repeat_penalty = 2.0;
  EXPECT_DOUBLE_EQ(penalized_logit(options, 3.0F, 1), 1.5);
  EXPECT_DOUBLE_EQ(penalized_logit(options, 3.0F, 4), 1.5);
  EXPECT_DOUBLE_EQ(penalized_logit(options, -3.0F, 1), -6.0);
  EXPECT_DOUBLE_EQ(penalized_logit(options, 3.0F, 0), 3.0);
  options = plain();
  options.presence_penalty = 0.5;
  EXPECT_DOUBLE_EQ(penalized_logit(options, 3.0F, 4), 2.5);
  options = plain();
  options.frequency_penalty = 0.5;
  EXPECT_DOUBLE_EQ(penalized_logit(options, 3.0F, 4), 1.0);
}

TEST(Penalties, LookAtTheLastTokensOnly) {
  const std::vector<float> logits{4.0F, 3.0F, 2.0F};
  const std::vector<std::int32_t> history{0, 1, 1};
  SamplingOptions options{.temperature = 0, .repeat_penalty = 10.0};
  const auto with_last = [&](std::int64_t last_n) {
    options.repeat_last_n = last_n;
    return Sampler(options).sample(logits, history);
  };
  EXPECT_EQ(with_last(2), 0);
  EXPECT_EQ(with_last(3), 2);
  EXPECT_EQ(with_last(-1), 2);
  EXPECT_EQ(with_last(0), 0);
}

TEST(Penalties, IgnoreTokensThatMayNotBeDrawn) {
  const std::vector<float> logits{1.0F, 2.0F};
  const std::vector<std::int32_t> history{99};
  EXPECT_EQ(Sampler({.temperature = 0, .repeat_penalty = 2.0}).sample(logits, history), 1);
}

TEST(Sampler, NeverDrawsAForbiddenToken) {
  std::vector<float> logits(20, -infinity);
  logits[4] = 0.0F;
  logits[7] = 0.0F;
  Sampler sampler(plain());
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < 200; ++i) ++counts[sampler.sample(logits, {})];
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_GT(counts[4], 0);
  EXPECT_GT(counts[7], 0);
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  Sampler sampler({});
  const auto refuse = [&](std::vector<float> logits, const char* part) {
    expect_error(
        ErrorCode::diverged, [&] { sampler.sample(logits, {}); }, part);
  };
  refuse({0.0F, NAN}, "the logit of token 1 is nan");
  refuse({infinity, 0.0F}, "the logit of token 0 is inf");
  refuse({-infinity, -infinity}, "all 2 logits are -inf");
}

TEST(SamplingOptions, NameTheValueThatCannotBe) {
  const auto refuse = [](const SamplingOptions& options, const char* part) {
    expect_error(
        ErrorCode::invalid_argument, [&] { Sampler{options}; }, part);
    expect_error(
        ErrorCode::invalid_argument,
        [&] { trace_candidates(std::vector<float>{1.0F}, options, {}); }, part);
  };
  refuse({.temperature = -0.5}, "not -0.5");
  refuse({.temperature = NAN}, "temperature must be a number from 0 to 100, not nan");
  refuse({.top_k = -2}, "top_k must be a whole number from -1 to 2147483647, not -2");
  refuse({.top_p = 1.5}, "top_p must be a number from 0 to 1, not 1.5");
  refuse({.min_p = -0.1}, "min_p");
  refuse({.repeat_penalty = 0.0}, "repeat_penalty must be a number from 0.01 to 100, not 0");
  refuse({.repeat_last_n = -2}, "not -2");
  refuse({.presence_penalty = INFINITY}, "presence_penalty must be a number from -2 to 2, not inf");
  refuse({.frequency_penalty = NAN}, "frequency_penalty");
}

std::vector<Candidate> candidates_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return trace_candidates(logits, {}, {});
}

TEST(CandidateMeasures, EntropyIsThatOfTheModelsDistribution) {
  EXPECT_NEAR(entropy_nats(candidates_of({0.25, 0.25, 0.25, 0.25})), std::log(4.0), 1e-6);
  EXPECT_NEAR(entropy_nats(candidates_of({0.5, 0.25, 0.25})), 1.5 * std::log(2.0), 1e-6);
  EXPECT_NEAR(entropy_nats(candidates_of({1.0, 0.0})), 0, 1e-12);
}

// The candidates of the two are in different orders: tokens are compared, not places.
TEST(CandidateMeasures, DivergenceComparesTokens) {
  const auto before = candidates_of({0.5, 0.3, 0.2});
  const auto after = candidates_of({0.2, 0.5, 0.3});
  const double expected =
      0.5 * std::log(0.5 / 0.2) + 0.3 * std::log(0.3 / 0.5) + 0.2 * std::log(0.2 / 0.3);
  EXPECT_NEAR(divergence_nats(before, after), expected, 1e-6);
  EXPECT_EQ(divergence_nats(before, before), 0);
  EXPECT_EQ(divergence_nats(candidates_of({0.5, 0.5}), candidates_of({1.0, 0.0})),
            std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace heed
