// Attention of toy models of every family, against the scores and patterns of their passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "microscope/attention/head_scan.h"
#include "microscope/attention/induction.h"
#include "microscope/attention/lazy_attention.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/attention/word_walk.h"
#include "microscope/families.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

using kernels::WeightFormat;

constexpr float no_score = -std::numeric_limits<float>::infinity();

// Between two computations of a weight of at most one from the same scores, which are below ten:
// a few roundings of 2^-24 of a score.
constexpr double share_tolerance = 4e-6;

class FamilyAttention : public ::testing::TestWithParam<testing::ToyFamily> {
 protected:
  static constexpr std::int64_t positions = 70;  // bf16 weights attend in bf16 from 64 on

  const StackSpecification& stack() const { return transformer.specification(); }

  // The scores and the patterns of all layers.
  Capture planes() const {
    std::vector<Point> points;
    for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
      points.push_back({PointKind::scores, layer});
      points.push_back({PointKind::pattern, layer});
    }
    return trace(transformer, tokens, std::move(points));
  }

  bool sees(std::int64_t layer, std::int64_t query, std::int64_t key) const {
    const std::int64_t window = stack().block.attention.window(layer);
    return key <= query && (window == 0 || key > query - window);
  }

  Transformer transformer = testing::toy_transformer(GetParam().stack);
  std::vector<std::int32_t> tokens =
      testing::random_tokens(positions, GetParam().stack.vocabulary_size, 3);
};

INSTANTIATE_TEST_SUITE_P(Families, FamilyAttention,
                         ::testing::ValuesIn(testing::every_toy_family(96)),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(FamilyAttention, RegionsAreThoseOfThePass) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16}) {
    transformer.parameters().prepare(format);
    const Capture capture = planes();
    const RecordedPass pass(transformer, {.source = {}, .target = tokens});
    RecordedAttention kept(pass);
    for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
      LazyAttention lazy(stack(), {layer}, positions);
      lazy.observe_attention(layer, pass.attention_input(only_site, layer),
                             pass.log_sum_exp(only_site, layer));
      for (std::int64_t head = 0; head < stack().heads(); ++head) {
        for (const auto& [values, kind] : {std::pair{AttentionValues::pattern, PointKind::pattern},
                                           std::pair{AttentionValues::scores, PointKind::scores}}) {
          const AttentionRegion region{.layer = layer,
                                       .head = head,
                                       .query_begin = 5,
                                       .query_end = positions,
                                       .key_begin = 2,
                                       .key_end = 66,
                                       .values = values};
          const View<const float> expected = capture.at({kind, layer}).view()[0][head];
          const Tensor<float> of_lazy = lazy.region(region),
                              of_kept = kept.region(only_site, region);
          for (std::int64_t t = 5; t < positions; ++t) {
            for (std::int64_t s = 2; s < 66; ++s) {
              const float wanted = expected(t, s), found = of_lazy.view()(t - 5, s - 2);
              EXPECT_EQ(found, of_kept.view()(t - 5, s - 2));
              if (!sees(layer, t, s)) {
                ASSERT_EQ(wanted, kind == PointKind::scores ? no_score : 0.0F);
                ASSERT_EQ(found, wanted) << "key " << s << " of query " << t;
                continue;
              }
              ASSERT_NEAR(found, wanted, share_tolerance * std::max(1.0F, std::abs(wanted)))
                  << "layer " << layer << ", head " << head << ", " << t << ", " << s;
            }
          }
        }
      }
    }
  }
}

// Means of scores leave out what is masked, and are −∞ where all is.
TEST_P(FamilyAttention, CellsPoolWhatIsVisible) {
  const Capture capture = planes();
  const RecordedPass pass(transformer, {.source = {}, .target = tokens});
  RecordedAttention kept(pass);
  constexpr std::int64_t pool = 8;
  for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
    const View<const float> scores = capture.at({PointKind::scores, layer}).view()[0][3];
    const Tensor<float> cells = kept.region(only_site, {.layer = layer,
                                                        .head = 3,
                                                        .query_end = positions,
                                                        .key_end = positions,
                                                        .pool = pool,
                                                        .values = AttentionValues::scores});
    for (std::int64_t i = 0; i < cells.shape()[0]; ++i) {
      for (std::int64_t j = 0; j < cells.shape()[1]; ++j) {
        double sum = 0;
        std::int64_t count = 0;
        for (std::int64_t t = i * pool; t < std::min((i + 1) * pool, positions); ++t) {
          for (std::int64_t s = j * pool; s < std::min((j + 1) * pool, positions); ++s) {
            if (!sees(layer, t, s)) continue;
            sum += scores(t, s);
            ++count;
          }
        }
        if (count == 0) {
          EXPECT_EQ(cells.view()(i, j), no_score);
        } else {
          const double mean = sum / static_cast<double>(count);
          EXPECT_NEAR(cells.view()(i, j), mean, 1e-5 * std::max(1.0, std::abs(mean)));
        }
      }
    }
  }
}

TEST_P(FamilyAttention, ListsOfPositionsLeaveOutWhatIsMasked) {
  const RecordedPass pass(transformer, {.source = {}, .target = tokens});
  const std::int64_t layer = stack().layers - 1;
  LazyAttention lazy(stack(), {layer}, positions);
  lazy.observe_attention(layer, pass.attention_input(only_site, layer),
                         pass.log_sum_exp(only_site, layer));
  const std::int64_t window = stack().block.attention.window(layer);
  const auto attended = lazy.most_attended(layer, 1, 40, 1000);
  EXPECT_EQ(std::ssize(attended), window > 0 ? window : 41);
  double sum = 0;
  for (const AttendedPosition& key : attended) {
    EXPECT_TRUE(sees(layer, 40, key.position));
    sum += key.weight;
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  const auto attending = lazy.most_attending(layer, 1, 40, 1000);
  EXPECT_EQ(std::ssize(attending), window > 0 ? window : positions - 40);
  for (const AttendedPosition& query : attending) EXPECT_TRUE(sees(layer, query.position, 40));
}

// A prompt, then token by token with a cache: the rows of the whole pass.
TEST_P(FamilyAttention, GrowsStepByStep) {
  const Capture capture = planes();
  LazyAttention grown(stack(), {}, positions);
  KeyValueCache cache(stack(), 1, positions);
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const StackActivations activations(stack(), 1, end - begin, Keep::one_block);
    transformer.forward({tokens.data() + begin, {1, end - begin}},
                        {.sequences = Sequences::next_of(cache, end - begin), .probe = &grown},
                        activations);
  };
  read(0, 60);
  for (std::int64_t t = 60; t < positions; ++t) read(t, t + 1);
  for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
    const View<const float> pattern = capture.at({PointKind::pattern, layer}).view()[0];
    for (std::int64_t head = 0; head < stack().heads(); ++head) {
      for (const std::int64_t t : {std::int64_t{30}, std::int64_t{60}, positions - 1}) {
        const std::vector<float> row = grown.row(layer, head, t);
        ASSERT_EQ(std::ssize(row), t + 1);
        // Streams whose products were summed in another order differ by about 1e-6 of their size,
        // and scores of up to ten by as much.
        for (std::int64_t s = 0; s <= t; ++s) EXPECT_NEAR(row[s], pattern(head, t, s), 1e-4);
      }
    }
  }
}

// Keys are kept once for all the heads that share them.
TEST(LazyAttention, KeepsSharedKeysOnce) {
  StackSpecification stack = testing::toy_llama(96);
  const std::int64_t shared = LazyAttention::bytes_needed(stack.block.attention, 96, 96);
  stack.block.attention.key_value_heads = stack.block.attention.query_heads;
  const std::int64_t own = LazyAttention::bytes_needed(stack.block.attention, 96, 96);
  const std::int64_t heads = 2;  // that no longer have keys
  EXPECT_EQ(own - shared, 96 * heads * stack.head_size() * std::int64_t{sizeof(float)});
}

// Sums over tiles and over the whole pattern, in f32, of up to 70 terms.
TEST_P(FamilyAttention, StatisticsAreThoseOfThePattern) {
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16}) {
    transformer.parameters().prepare(format);
    const Capture capture = planes();
    const HeadScan scan = scan_heads(transformer, tokens);
    for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
      for (std::int64_t head = 0; head < stack().heads(); ++head) {
        const View<const float> pattern = capture.at({PointKind::pattern, layer}).view()[0][head];
        const HeadStatistics expected =
            head_statistics(pattern, stack().block.attention.window(layer));
        const HeadStatistics found = scan.statistics(layer, head);
        EXPECT_NEAR(found.entropy, expected.entropy, 2e-5);
        EXPECT_NEAR(found.evenness, expected.evenness, 2e-5);
        EXPECT_LE(found.evenness, 1 + 1e-6);
        EXPECT_NEAR(found.distance, expected.distance, positions * 2e-5);
        EXPECT_NEAR(found.self, expected.self, 2e-5);
        EXPECT_NEAR(found.previous, expected.previous, 2e-5);
        EXPECT_NEAR(found.content_weight, expected.content_weight, 2e-5);
      }
    }
  }
}

TEST(HeadStatistics, EvenAttentionInAWindowIsEven) {
  Tensor<float> pattern(Shape{9, 9});
  for (std::int64_t t = 0; t < 9; ++t) {
    const std::int64_t first = std::max<std::int64_t>(t - 2, 0);
    for (std::int64_t s = first; s <= t; ++s) {
      pattern.view()(t, s) = 1.0F / static_cast<float>(t + 1 - first);
    }
  }
  EXPECT_NEAR(head_statistics(pattern, 3).evenness, 1, 1e-6);
  EXPECT_LT(head_statistics(pattern).evenness, 0.8);
}

// Every step of a walk is a number of the pass.
TEST_P(FamilyAttention, WalksWithTheNumbersOfThePass) {
  for (std::int64_t layer = 0; layer < stack().layers; ++layer) {
    std::vector<Point> points = word_walk_points(stack(), layer);
    points.push_back({PointKind::scores, layer});
    points.push_back({PointKind::pattern, layer});
    points.push_back({PointKind::head_results, layer});
    const Capture capture = trace(transformer, tokens, points);
    const auto at = [&](PointKind kind) { return capture.at({kind, layer}).view(); };
    for (std::int64_t head = 0; head < stack().heads(); ++head) {
      for (const std::int64_t t : {std::int64_t{0}, std::int64_t{9}, positions - 1}) {
        const WordWalk walk = walk_word(transformer, capture, layer, head, t);
        for (const KeyAnswer& answer : walk.answers) {
          const std::int64_t s = answer.position;
          ASSERT_EQ(answer.masked, !sees(layer, t, s));
          ASSERT_NEAR(answer.share, at(PointKind::pattern)(0, head, t, s), share_tolerance);
          if (answer.masked) continue;
          const float score = at(PointKind::scores)(0, head, t, s);
          ASSERT_NEAR(answer.scaled, score, share_tolerance * std::max(1.0F, std::abs(score)));
        }
        for (std::int64_t d = 0; d < walk.head_size; ++d) {
          const float z = at(PointKind::mixed_values)(0, t, head, d);
          ASSERT_NEAR(walk.output[d], z, share_tolerance * std::max(1.0F, std::abs(z)));
        }
        for (std::int64_t c = 0; c < stack().channels; ++c) {
          const float result = at(PointKind::head_results)(0, t, head, c);
          ASSERT_NEAR(walk.head_projection[c], result, 1e-5 * std::max(1.0F, std::abs(result)));
          ASSERT_EQ(walk.residual_after[c], walk.residual_before[c] + walk.attention_out[c]);
        }
      }
    }
  }
}

// What uniform attention scores is what it sees: nothing at a key outside the window.
TEST(Induction, ComparesWithUniformAttentionInTheWindow) {
  StackSpecification stack = testing::toy_llama(64);
  stack.block.attention.mask = {MaskKind::banded, {4, 0}};
  const InductionMeasure measure =
      measure_induction(testing::toy_transformer(stack), {.sequences = 2});
  EXPECT_EQ(measure.length, 32);
  double everywhere = 0;
  for (std::int64_t t = 32; t < 64; ++t) everywhere += 1.0 / static_cast<double>(t + 1) / 32;
  EXPECT_NEAR(measure.uniform_induction, everywhere, 1e-12);
  // The weights on the previous token are 1/2, 1/3, then 1/4 in the window of four.
  const double in_window = (1.0 / 2 + 1.0 / 3 + 61 * 0.25) / 63;
  for (const HeadScore& head : measure.induction) {
    EXPECT_NEAR(head.uniform, head.layer == 0 ? 0 : everywhere, 1e-12);
    if (head.layer == 0) {
      EXPECT_EQ(head.score, 0);
      EXPECT_FALSE(head.is_significant);
    }
  }
  EXPECT_NEAR(measure.previous.front().uniform, in_window, 1e-12);
  EXPECT_NEAR(measure.previous.front().control, in_window, 1e-12);
}

}  // namespace
}  // namespace heed
