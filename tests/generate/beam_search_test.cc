#include "generate/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/expect_error.h"
#include "base/random.h"
#include "generate/plain_search.h"

namespace heed {
namespace {

using testing::exhaustive_search;
using testing::expect_error;
using testing::expect_found;
using testing::expect_same;
using testing::few_sources;
using testing::plain_beam_search;
using testing::PlainHypothesis;
using testing::toy_end;
using testing::toy_padding;
using testing::toy_translator;
using testing::toy_translator_architecture;
using testing::ToySources;
using testing::uncached;
using testing::UncachedNext;

ToySources many_sources(std::int64_t count, std::int64_t vocabulary) {
  RandomStream random(11, 0);
  ToySources sources{};
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<std::int32_t> source(1 + random.below(9));
    for (std::int32_t& token : source) {
      token = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary)));
    }
    sources.add(source);
  }
  return sources;
}

TEST(BeamSearch, WithEnoughBeamsItIsExhaustive) {
  const Transformer model = toy_translator();
  const ToySources sources = few_sources();
  std::vector<UncachedNext> next = uncached(model, sources);
  for (const double penalty : {1.0, 0.6, 0.0, -1.0, 2.0}) {
    const auto found =
        beam_search(model, sources.rows(),
                    {.beams = 128, .length_penalty = penalty, .n_best = 40, .max_length = 4});
    for (std::size_t b = 0; b < next.size(); ++b) {
      EXPECT_EQ(found[b].size(), 40U);
      expect_found(found[b], exhaustive_search(next[b], 4, penalty), penalty);
    }
  }
}

TEST(BeamSearch, FindsWhatAPlainOneWithoutACacheFinds) {
  const ToySources sources = few_sources();
  int differ = 0;  // from the greedy output
  for (const std::uint64_t seed : {3U, 4U, 5U}) {
    const Transformer model = toy_translator(seed);
    std::vector<UncachedNext> next = uncached(model, sources);
    const auto greedy = greedy_search(model, sources.rows(), {.max_length = 9});
    for (const double penalty : {1.0, 0.6, 2.0}) {
      for (const std::int64_t beams : {1, 2, 3, 5}) {
        const auto found = beam_search(
            model, sources.rows(),
            {.beams = beams, .length_penalty = penalty, .n_best = beams, .max_length = 9});
        for (std::size_t b = 0; b < next.size(); ++b) {
          const auto expected =
              plain_beam_search(next[b], 9, penalty, static_cast<std::size_t>(beams));
          EXPECT_EQ(found[b].size(), expected.size());
          expect_found(found[b], expected, penalty);
          differ += found[b][0].tokens != greedy[b].tokens;
        }
      }
    }
  }
  EXPECT_GT(differ, 20);
}

// The first token is certain, whatever the model thinks of it; what follows is searched as ever.
TEST(BeamSearch, BeginsWithTheTokenThatTheModelForces) {
  const ToySources sources = few_sources();
  Architecture architecture = toy_translator_architecture();
  for (const std::int64_t forced : {1, 4}) {
    architecture.forced_first = forced;
    Transformer model(architecture);
    model.parameters().initialize(4);
    std::vector<UncachedNext> next = uncached(model, sources);
    for (const double penalty : {1.0, 0.0}) {
      for (const std::int64_t beams : {1, 3}) {
        const auto found = beam_search(
            model, sources.rows(),
            {.beams = beams, .length_penalty = penalty, .n_best = beams, .max_length = 7});
        for (std::size_t b = 0; b < next.size(); ++b) {
          const auto expected =
              plain_beam_search(next[b], 7, penalty, static_cast<std::size_t>(beams));
          EXPECT_EQ(found[b].size(), expected.size());
          expect_found(found[b], expected, penalty);
          for (const auto& hypothesis : found[b]) EXPECT_EQ(hypothesis.tokens.front(), forced);
        }
      }
      const auto all =
          beam_search(model, sources.rows(),
                      {.beams = 128, .length_penalty = penalty, .n_best = 20, .max_length = 4});
      for (std::size_t b = 0; b < next.size(); ++b) {
        EXPECT_EQ(all[b].size(), 20U);
        expect_found(all[b], exhaustive_search(next[b], 4, penalty), penalty);
      }
    }
  }
  // An end that is forced is all there is.
  architecture.forced_first = toy_end;
  const auto ended = beam_search(Transformer(architecture), sources.rows(), {.beams = 3});
  for (const auto& hypotheses : ended) {
    ASSERT_EQ(hypotheses.size(), 1U);
    EXPECT_EQ(hypotheses.front().tokens, std::vector<std::int32_t>{toy_end});
    EXPECT_TRUE(hypotheses.front().finished);
  }
}

TEST(BeamSearch, GreedyTakesTheLikeliestTokenAtEachStep) {
  const Transformer model = toy_translator();
  const ToySources sources = few_sources();
  const auto found = greedy_search(model, sources.rows(), {.max_length = 12});
  for (std::int64_t b = 0; b < sources.count(); ++b) {
    UncachedNext next(model, sources.source(b));
    PlainHypothesis expected;
    while (expected.tokens.size() < 12 &&
           (expected.tokens.empty() || expected.tokens.back() != toy_end)) {
      std::vector<double> log_probabilities = next(expected.tokens);
      log_probabilities[toy_padding] = -1e9;
      const auto likeliest = std::ranges::max_element(log_probabilities);
      expected = expected.with(static_cast<std::int32_t>(likeliest - log_probabilities.begin()),
                               *likeliest);
    }
    expect_found({found[static_cast<std::size_t>(b)]}, {expected}, 1.0);
  }
}

void expect_independent(const Transformer& model, const ToySources& sources, CacheType type) {
  const BeamOptions options{.beams = 3, .n_best = 3, .max_length = 12, .cache_type = type};
  BeamOptions small = options;
  small.batch_tokens = 40;
  const auto together = beam_search(model, sources.rows(), options);
  const auto in_small_batches = beam_search(model, sources.rows(), small);
  for (std::int64_t b = 0; b < sources.count(); ++b) {
    const auto& own = together[static_cast<std::size_t>(b)];
    expect_same(own, in_small_batches[static_cast<std::size_t>(b)]);
    const ToySources one{sources.source(b)};
    expect_same(own, beam_search(model, one.rows(), options).front());
  }
}

// Batches of every size, in every type of cache and weights.
TEST(BeamSearch, AResultDoesNotDependOnTheOtherSources) {
  Transformer model = toy_translator(8, 90);
  for (const CacheType type : {CacheType::f32, CacheType::bf16, CacheType::int8}) {
    expect_independent(model, many_sources(13, 90), type);
  }
  for (const auto format :
       {kernels::WeightFormat::bf16, kernels::WeightFormat::int8, kernels::WeightFormat::int4}) {
    Transformer prepared = toy_translator(8, 90);
    prepared.parameters().prepare(format);
    expect_independent(prepared, many_sources(13, 90), CacheType::int8);
  }
}

// Longer than the cache is at first.
TEST(BeamSearch, LongOutputsAreWhatFullPassesSay) {
  Architecture architecture = testing::toy_translator_architecture(40);
  for (StackSpecification& stack : architecture.stacks) stack.context = 100;
  architecture.stacks[1].end_of_text = -1;
  Transformer model(architecture);
  model.parameters().initialize(5);
  const ToySources sources = few_sources();
  const auto found = beam_search(model, sources.rows(), {.beams = 2, .max_length = 80});
  for (std::int64_t b = 0; b < sources.count(); ++b) {
    const TokenHypothesis& own = found[static_cast<std::size_t>(b)].front();
    EXPECT_EQ(own.tokens.size(), 80U);
    EXPECT_FALSE(own.finished);
    UncachedNext next(model, sources.source(b));
    double log_probability = 0;
    for (std::size_t i = 0; i < own.tokens.size(); ++i) {
      log_probability +=
          next({own.tokens.begin(),
                own.tokens.begin() + static_cast<int>(i)})[static_cast<std::size_t>(own.tokens[i])];
    }
    EXPECT_NEAR(own.log_probability, log_probability, 1e-5 * std::abs(log_probability) + 1e-4);
  }
}

TEST(BeamSearch, OutputsHaveALongestLength) {
  Architecture architecture = testing::toy_translator_architecture();
  architecture.stacks[1].end_of_text = -1;
  Transformer model(architecture);
  model.parameters().initialize(5);
  const ToySources sources{{3, 4}, {2}};
  const auto length = [&](std::int64_t longest, std::size_t source) {
    return beam_search(model, sources.rows(), {.max_length = longest})[source][0].tokens.size();
  };
  EXPECT_EQ(length(7, 0), 7U);
  EXPECT_EQ(length(0, 0), 3U * 2 + 16);
  EXPECT_EQ(length(0, 1), 3U * 1 + 16);
  const ToySources longer{{1, 2, 3, 4, 1, 2, 3, 4}};
  EXPECT_EQ(beam_search(model, longer.rows())[0][0].tokens.size(), 24U);  // the context
}

// Any of the tokens that end a text ends a hypothesis.
TEST(BeamSearch, OutputsEndWithAnyOfTheTokensThatEndAText) {
  Architecture architecture = testing::toy_translator_architecture();
  architecture.other_ends = {3, 2};
  Transformer model(architecture);
  model.parameters().initialize(3);
  const ToySources sources = few_sources();
  bool seen = false;
  for (const std::int64_t beams : {1, 4}) {
    for (const auto& hypotheses :
         beam_search(model, sources.rows(), {.beams = beams, .n_best = beams})) {
      for (const TokenHypothesis& hypothesis : hypotheses) {
        for (std::size_t i = 0; i < hypothesis.tokens.size(); ++i) {
          const bool is_last = i + 1 == hypothesis.tokens.size();
          EXPECT_EQ(architecture.ends_text(hypothesis.tokens[i]), is_last && hypothesis.finished);
        }
        seen = seen || (hypothesis.finished && hypothesis.tokens.back() != testing::toy_end);
      }
    }
  }
  EXPECT_TRUE(seen) << "no other end ended a hypothesis";
}

TEST(BeamSearch, TheLastTokenMayBeForced) {
  Architecture architecture = testing::toy_translator_architecture();
  architecture.stacks[1].end_of_text = -1;
  Transformer free(architecture);
  architecture.forced_last = 3;
  architecture.other_ends = {3};
  Transformer model(architecture);
  for (Transformer* one : {&free, &model}) one->parameters().initialize(5);
  const ToySources sources{{4, 1}};
  const auto found = beam_search(model, sources.rows(), {.beams = 3, .n_best = 3, .max_length = 2});
  UncachedNext next(free, sources.source(0));
  int forced = 0;
  for (const TokenHypothesis& hypothesis : found.front()) {
    EXPECT_TRUE(hypothesis.finished);
    EXPECT_EQ(hypothesis.tokens.back(), 3);
    if (hypothesis.tokens.size() < 2) continue;  // it ended by itself
    ++forced;
    const auto first = static_cast<std::size_t>(hypothesis.tokens.front());
    EXPECT_NEAR(hypothesis.log_probability, next({})[first], 1e-5) << "the last one costs nothing";
  }
  EXPECT_GE(forced, 2) << "one of three may have ended before";
}

TEST(BeamSearch, ReportsProgressAndStops) {
  const Transformer model = toy_translator();
  const ToySources sources = many_sources(20, 6);
  std::vector<Progress> reports;
  std::atomic<bool> stop = false;
  BeamOptions options{.batch_tokens = 30, .stop = &stop, .progress = [&](const Progress& progress) {
                        reports.push_back(progress);
                      }};
  const auto all = beam_search(model, sources.rows(), options);
  EXPECT_EQ(all.size(), 20U);
  ASSERT_GT(reports.size(), 2U);
  EXPECT_EQ(reports.front().done, 0);
  EXPECT_EQ(reports.back().done, 20);
  EXPECT_EQ(reports.back().total, 20);
  options.progress = [&](const Progress& progress) { stop = progress.done >= 5; };
  expect_error(
      ErrorCode::interrupted, [&] { beam_search(model, sources.rows(), options); }, "stopped after",
      "of 20 sources");
}

TEST(BeamSearch, RefusesWhatItCannotDecode) {
  const Transformer model = toy_translator();
  const auto refused = [&](const ToySources& sources, const BeamOptions& options,
                           std::string_view expected) {
    expect_error(
        ErrorCode::invalid_argument, [&] { beam_search(model, sources.rows(), options); },
        expected);
  };
  EXPECT_TRUE(beam_search(model, ToySources{}.rows(), {}).empty());
  refused({{1}, {}}, {}, "source 2 has no tokens");
  refused({{1}, std::vector<std::int32_t>(25, 2)}, {}, "source 2 has 25 tokens");
  refused({{1, 2, 6}}, {}, "source 1 has the token 6: expected 0 to 5");
  refused({{1}}, {.beams = 0}, "the number of beams is 0: expected 1 to 1024");
  refused({{1}}, {.beams = 2, .n_best = 3}, "the number of hypotheses is 3: expected 1 to 2");
  refused({{1}}, {.max_length = 25}, "the maximum length is 25: expected 0 to 24");
  refused({{1}}, {.length_penalty = std::nan("")}, "the length penalty is nan");
  refused({{1}}, {.batch_tokens = 0}, "the batch size in tokens is 0");
  Architecture silent = model.architecture();
  silent.decoder_start = -1;
  expect_error(
      ErrorCode::unsupported, [&] { beam_search(Transformer(silent), ToySources{{1}}.rows(), {}); },
      "which token its decoder starts from");
}

TEST(BeamSearch, RefusesLogitsThatAreNotNumbers) {
  Transformer model = toy_translator();
  for (float& value : model.parameters().all()) value = std::nanf("");
  expect_error(
      ErrorCode::diverged,
      [&] {
        beam_search(model, ToySources{{1, 2}}.rows(), {});
      },
      "not finite");
}

}  // namespace
}  // namespace heed
