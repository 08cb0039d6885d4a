#include "microscope/attention/head_scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/capture.h"
#include "support/small_model.h"

namespace heed {
namespace {

// Tolerance between statistics computed by tiles and from the whole pattern: f32 rounding.
constexpr double statistics_tolerance = 2e-5;

std::vector<std::int32_t> some_tokens(std::int64_t count) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<std::int32_t>((i * i + 3 * i) % 11));
  }
  tokens[5] = tokens[4];  // a repeated token
  return tokens;
}

// TransformerLens's detect_head, on whole matrices.
double detected(View<const float> pattern, const HeadDetector& detector,
                std::span<const std::int32_t> tokens) {
  const std::int64_t positions = pattern.extent(0);
  double overlap = 0, weight = 0, distance = 0;
  for (std::int64_t t = 0; t < positions; ++t) {
    std::vector<float> row(static_cast<std::size_t>(t + 1));
    for (std::int64_t s = 0; s <= t; ++s) {
      switch (detector.pattern) {
        case HeadPattern::previous: row[s] = s == t - 1; break;
        case HeadPattern::duplicate: row[s] = s < t && tokens[s] == tokens[t]; break;
        case HeadPattern::induction: row[s] = s > 0 && tokens[s - 1] == tokens[t]; break;
        case HeadPattern::custom: detector.custom(t, row);
      }
    }
    for (std::int64_t s = 0; s <= t; ++s) {
      if ((detector.exclude_first && s == 0) || (detector.exclude_own && s == t)) continue;
      overlap += pattern(t, s) * row[s];
      weight += pattern(t, s);
      distance += std::abs(pattern(t, s) - row[s]);
    }
  }
  return detector.measure == DetectionMeasure::mul
             ? overlap / weight
             : 1.0 - distance / static_cast<double>(positions);
}

void expect_statistics(const HeadScan& scan, const Capture& capture,
                       const std::vector<std::int32_t>& tokens) {
  const auto positions = std::ssize(tokens);
  for (std::int64_t layer = 0; layer < scan.layers(); ++layer) {
    for (std::int64_t head = 0; head < scan.heads(); ++head) {
      const View<const float> pattern = capture.at({PointKind::pattern, layer}).view()[0][head];
      const HeadStatistics expected = head_statistics(pattern);
      const HeadStatistics actual = scan.statistics(layer, head);
      EXPECT_NEAR(actual.entropy, expected.entropy, statistics_tolerance);
      EXPECT_NEAR(actual.evenness, expected.evenness, statistics_tolerance);
      EXPECT_NEAR(actual.first, expected.first, statistics_tolerance);
      EXPECT_NEAR(actual.self, expected.self, statistics_tolerance);
      EXPECT_NEAR(actual.previous, expected.previous, statistics_tolerance);
      EXPECT_NEAR(actual.distance, expected.distance, positions * statistics_tolerance);
      EXPECT_NEAR(actual.content_weight, expected.content_weight, statistics_tolerance);
      EXPECT_NEAR(actual.largest, expected.largest, statistics_tolerance);
      EXPECT_NEAR(actual.last, expected.last, statistics_tolerance);
      double duplicate = 0, induction = 0;
      std::int64_t repeated = 0;
      for (std::int64_t t = 1; t < positions; ++t) {
        bool came_before = false;
        for (std::int64_t s = 0; s <= t; ++s) {
          if (s < t && tokens[s] == tokens[t]) {
            duplicate += pattern(t, s);
            came_before = true;
          }
          if (s > 0 && tokens[s - 1] == tokens[t]) induction += pattern(t, s);
        }
        repeated += came_before ? 1 : 0;
      }
      EXPECT_EQ(scan.repeated_queries(), repeated);
      EXPECT_NEAR(actual.duplicate, duplicate / static_cast<double>(repeated),
                  statistics_tolerance);
      EXPECT_NEAR(actual.induction, induction / static_cast<double>(repeated),
                  statistics_tolerance);
    }
  }
}

TEST(HeadScan, AgreesWithTheWholePattern) {
  const Transformer transformer = testing::small_gpt(20, 96);
  const auto tokens = some_tokens(90);
  expect_statistics(scan_heads(transformer, tokens), trace_patterns(transformer, tokens), tokens);
}

// A perfect induction head: on a repeated sequence, every query of the second half attends to the
// token after its first occurrence.
TEST(HeadScan, GivesAPerfectInductionHeadAllOfTheScore) {
  constexpr std::int64_t half = 16, positions = 2 * half, size = 64;
  StackSpecification config = make_gpt_config(1, 1, size, positions, 40);
  Tensor<float> query(Shape{1, positions, 1, size}), key(query.shape());
  Tensor<float> out(query.shape()), log_sum_exp(Shape{1, 1, positions});
  std::vector<std::int32_t> tokens;
  for (std::int64_t t = 0; t < positions; ++t) {
    tokens.push_back(static_cast<std::int32_t>(t % half));
    query.view()(0, t, 0, t % half) = 100;               // query: the own token
    if (t > 0) key.view()(0, t, 0, (t - 1) % half) = 1;  // key: the previous token
  }
  const kernels::AttentionInput<float> input{
      .query = query, .key = key, .value = key, .mask = kernels::Mask::causal, .scale = 1};
  kernels::attention_forward(input, out, log_sum_exp);
  HeadScan scan(Architecture{.stacks = {config}});
  scan.expect({tokens.data(), {1, positions}});
  scan.observe_attention_at({PointKind::pattern, 0}, input, log_sum_exp, 0);
  EXPECT_EQ(scan.repeated_queries(), half);
  EXPECT_NEAR(scan.statistics(0, 0).induction, 1, statistics_tolerance);
  EXPECT_NEAR(scan.statistics(0, 0).duplicate, 0, statistics_tolerance);
}

TEST(HeadScan, UsesTheRoundedOperandsOfBf16Passes) {
  constexpr std::int64_t positions = 70;
  Transformer transformer = testing::small_gpt(20, 96);
  transformer.parameters().prepare(
      kernels::WeightFormat::bf16);  // from 64 positions on, products too
  const auto tokens = some_tokens(positions);
  const Capture capture = trace_patterns(transformer, tokens);
  const HeadScan scan = scan_heads(transformer, tokens);
  for (std::int64_t layer = 0; layer < scan.layers(); ++layer) {
    for (std::int64_t head = 0; head < scan.heads(); ++head) {
      const HeadStatistics expected =
          head_statistics(capture.at({PointKind::pattern, layer}).view()[0][head]);
      const HeadStatistics actual = scan.statistics(layer, head);
      EXPECT_NEAR(actual.entropy, expected.entropy, statistics_tolerance);
      EXPECT_NEAR(actual.self, expected.self, statistics_tolerance);
      EXPECT_NEAR(actual.content_weight, expected.content_weight, statistics_tolerance);
    }
  }
}

std::vector<HeadDetector> every_detector() {
  std::vector<HeadDetector> detectors;
  for (const HeadPattern pattern : {HeadPattern::previous, HeadPattern::duplicate,
                                    HeadPattern::induction, HeadPattern::custom}) {
    for (const DetectionMeasure measure : {DetectionMeasure::mul, DetectionMeasure::abs}) {
      for (int excluded = 0; excluded < 4; ++excluded) {
        HeadDetector detector{.pattern = pattern,
                              .measure = measure,
                              .exclude_first = (excluded & 1) != 0,
                              .exclude_own = (excluded & 2) != 0};
        if (pattern == HeadPattern::custom) {
          detector.custom = [](std::int64_t query, std::span<float> keys) {
            for (std::size_t s = 0; s < keys.size(); ++s) {
              keys[s] = 1.0F / static_cast<float>(1 + query - static_cast<std::int64_t>(s));
            }
          };
        }
        detectors.push_back(detector);
      }
    }
  }
  return detectors;
}

void expect_detections(const HeadScan& scan, const Capture& capture,
                       const std::vector<std::int32_t>& tokens) {
  const std::vector<HeadDetector> detectors = every_detector();
  for (std::int64_t layer = 0; layer < scan.layers(); ++layer) {
    for (std::int64_t head = 0; head < scan.heads(); ++head) {
      for (std::size_t i = 0; i < detectors.size(); ++i) {
        const View<const float> pattern = capture.at({PointKind::pattern, layer}).view()[0][head];
        EXPECT_NEAR(scan.detection(layer, head, i), detected(pattern, detectors[i], tokens),
                    statistics_tolerance)
            << "detector " << i;
      }
    }
  }
}

TEST(HeadScan, DetectsAsWholeMatricesDo) {
  const Transformer transformer = testing::small_gpt(20, 96);
  const auto tokens = some_tokens(70);
  expect_detections(scan_heads(transformer, tokens, {.detectors = every_detector()}),
                    trace_patterns(transformer, tokens), tokens);
}

// Statistics include interventions, in edited heads and in later ones.
TEST(HeadScan, SeesInterventions) {
  const Transformer transformer = testing::small_gpt(20, 96);
  const auto tokens = some_tokens(70);
  Interventions editor(
      transformer.specification(),
      {{{PointKind::pattern, 0}, {.heads = {1}}, ScaleBy{0.5F}},
       {{PointKind::pattern, 1}, {.heads = {0}}, CutEdges{{{9, 9}, {9, 3}, {60, 2}}}},
       {{PointKind::scores, 1}, {.heads = {2}}, ScaleBy{-1.0F}},
       {{PointKind::residual_mid, 0}, {}, ScaleBy{0.25F}}});
  Capture capture({Point{PointKind::pattern, 0}, Point{PointKind::pattern, 1}});
  const StackActivations activations(transformer.specification(), 1, 70, Keep::one_block);
  transformer.forward({tokens.data(), {1, 70}},
                      {.sequences = {1, 70}, .probe = &capture, .editor = &editor}, activations);
  const HeadScan scan =
      scan_heads(transformer, tokens, {.detectors = every_detector(), .editor = &editor});
  expect_statistics(scan, capture, tokens);
  expect_detections(scan, capture, tokens);
  EXPECT_GT(std::abs(scan.statistics(1, 1).entropy -
                     scan_heads(transformer, tokens).statistics(1, 1).entropy),
            1e-3);
}

TEST(HeadScan, ReadsTextsLongerThanTheContextInWindows) {
  const Transformer transformer = testing::small_gpt(20, 32);
  const auto tokens = some_tokens(70);
  std::vector<std::int64_t> progress;
  const HeadScan scan =
      scan_heads(transformer, tokens, {.detectors = {{}}, .progress = [&](const Progress& told) {
                                         progress.push_back(told.done);
                                         EXPECT_EQ(told.total, 70);
                                       }});
  EXPECT_EQ(progress, (std::vector<std::int64_t>{32, 64, 70}));
  double sum = 0;
  for (const auto& [begin, size] : {std::pair{0, 32}, std::pair{32, 32}, std::pair{64, 6}}) {
    const HeadScan window = scan_heads(transformer, std::span(tokens).subspan(begin, size));
    sum += window.statistics(1, 2).entropy * (size - 1);
  }
  EXPECT_NEAR(scan.statistics(1, 2).entropy, sum / 67, 1e-6);
}

TEST(HeadScan, SupportsWindowsOfAnyLength) {
  const Transformer transformer = testing::small_gpt(20, 32);
  const auto tokens = some_tokens(24);
  const HeadScan whole = scan_heads(transformer, tokens, {.window = 12});
  const HeadScan first = scan_heads(transformer, std::span(tokens).first(12));
  const HeadScan second = scan_heads(transformer, std::span(tokens).last(12));
  EXPECT_NEAR(whole.statistics(0, 1).entropy,
              (first.statistics(0, 1).entropy + second.statistics(0, 1).entropy) / 2, 1e-6);
  EXPECT_THROW(scan_heads(transformer, tokens, {.window = 33}), Error);
  EXPECT_THROW(scan_heads(transformer, tokens, {.window = -1}), Error);
}

TEST(HeadScan, RefusesWhatItCannotRead) {
  const Transformer transformer = testing::small_gpt(20, 32);
  EXPECT_THROW(scan_heads(transformer, {}), Error);
  EXPECT_THROW(scan_heads(transformer, std::vector<std::int32_t>{20}), Error);
  EXPECT_THROW(
      HeadScan(transformer.architecture(), {.detectors = {{.pattern = HeadPattern::custom}}}),
      Error);
  const HeadScan scan = scan_heads(transformer, std::vector<std::int32_t>{1, 2});
  EXPECT_THROW(scan.statistics(2, 0), Error);
  EXPECT_THROW(scan.statistics(0, 3), Error);
  EXPECT_THROW(scan.detection(0, 0, 0), Error);
  const std::atomic<bool> stop{true};
  EXPECT_THROW(scan_heads(transformer, std::vector<std::int32_t>{1, 2}, {.stop = &stop}), Error);
}

TEST(HeadScan, ATextOfOneTokenHasNoStatistics) {
  const Transformer transformer = testing::small_gpt(20, 32);
  const HeadScan scan = scan_heads(transformer, std::vector<std::int32_t>{7}, {.detectors = {{}}});
  EXPECT_EQ(scan.statistics(0, 0).entropy, 0);
  EXPECT_EQ(scan.detection(0, 0, 0), 0);
}

TEST(SampleWindows, AreWholeDistinctAndOfTheSeed) {
  std::vector<std::int32_t> tokens(1003);
  std::iota(tokens.begin(), tokens.end(), 0);
  const WindowSample sample = sample_windows(tokens, 10, 20, 7);
  ASSERT_EQ(sample.begins.size(), 20U);
  ASSERT_EQ(sample.tokens.size(), 200U);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sample.begins[i] % 10, 0);
    if (i > 0) {
      EXPECT_GT(sample.begins[i], sample.begins[i - 1]);
    }
    EXPECT_EQ(sample.tokens[10 * i], sample.begins[i]);
    EXPECT_EQ(sample.tokens[10 * i + 9], sample.begins[i] + 9);
  }
  EXPECT_GT(sample.begins.back(), 500);  // not only the beginning
  EXPECT_EQ(sample_windows(tokens, 10, 20, 7).begins, sample.begins);
  EXPECT_NE(sample_windows(tokens, 10, 20, 8).begins, sample.begins);
  EXPECT_EQ(sample_windows(tokens, 10, 5000, 7).begins.size(), 100U);
  EXPECT_EQ(sample_windows(std::span(tokens).first(4), 10, 3, 7).tokens.size(), 4U);
  EXPECT_THROW(sample_windows({}, 10, 3, 7), Error);
}

}  // namespace
}  // namespace heed
