#include "microscope/attention/lazy_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "generate/random_transformer.h"
#include "kernels/kernels.h"
#include "microscope/attention/recorded_attention.h"
#include "microscope/traces/capture.h"
#include "model/cache.h"
#include "support/small_model.h"

namespace heed {
namespace {

// Tolerance between two computations of a weight of at most one: a few roundings.
constexpr double weight_tolerance = 1e-6;

void read(const Transformer& transformer, std::span<const std::int32_t> tokens,
          KeyValueCache& cache, Probe& probe) {
  const auto positions = std::ssize(tokens);
  const StackActivations activations(transformer.specification(), 1, positions, Keep::one_block);
  transformer.forward({tokens.data(), {1, positions}},
                      {.sequences = Sequences::next_of(cache, positions), .probe = &probe},
                      activations);
}

// A head with random queries and keys and its materialised plane.
struct RandomHead {
  StackSpecification config;
  LazyAttention attention;
  Tensor<float> pattern;  // (T, T)
  Tensor<float> scores;

  explicit RandomHead(std::int64_t positions)
      : config(make_gpt_config(1, 2, 16, positions, 5)), attention(config, {}, positions) {
    const Shape shape{1, positions, 2, 8};
    Tensor<float> query(shape), key(shape), out(shape), log_sum_exp(Shape{1, 2, positions});
    RandomStream random(20, 1);
    for (float& value : query.span()) value = static_cast<float>(2 * random.normal());
    for (float& value : key.span()) value = static_cast<float>(2 * random.normal());
    const kernels::AttentionInput<float> input{query, key, key, kernels::Mask::causal,
                                               1.0F / std::sqrt(8.0F)};
    kernels::attention_forward(input, out, log_sum_exp);
    attention.observe_attention(0, input, log_sum_exp);
    pattern = Tensor<float>(Shape{positions, positions});
    scores = Tensor<float>(pattern.shape());
    const kernels::AttentionTile all{0, 1, 0, positions, 0, positions};
    kernels::attention_pattern_tile(input, log_sum_exp, all, pattern);
    kernels::attention_scores_tile(input, all, scores);
  }

  // A cell of `pool` by definition.
  double cell(std::int64_t row, std::int64_t column, std::int64_t pool, AttentionValues values,
              Pooling pooling) const {
    const std::int64_t positions = pattern.shape()[0];
    double sum = 0;
    double largest = -std::numeric_limits<double>::infinity();
    std::int64_t count = 0;
    for (std::int64_t t = row * pool; t < std::min((row + 1) * pool, positions); ++t) {
      for (std::int64_t s = column * pool; s < std::min((column + 1) * pool, positions); ++s) {
        if (values == AttentionValues::scores && s > t) continue;
        const auto& plane = values == AttentionValues::pattern ? pattern : scores;
        sum += plane.view()(t, s);
        largest = std::max<double>(largest, plane.view()(t, s));
        ++count;
      }
    }
    if (pooling == Pooling::max) return largest;
    return count > 0 ? sum / static_cast<double>(count) : -std::numeric_limits<double>::infinity();
  }
};

TEST(LazyAttention, HasTheMaterialisedPatternOfAPass) {
  const Transformer transformer = testing::small_gpt(20, 64);
  const auto tokens = testing::random_tokens(50, 20, 3);
  const Capture materialised = trace_patterns(transformer, tokens);
  LazyAttention attention(transformer.specification(), {}, 50);
  KeyValueCache cache(transformer.specification(), 1, 64);
  read(transformer, tokens, cache, attention);
  for (std::int64_t layer = 0; layer < transformer.specification().layers; ++layer) {
    const View<const float> patterns = materialised.at({PointKind::pattern, layer}).view()[0];
    for (std::int64_t head = 0; head < transformer.specification().heads(); ++head) {
      const Tensor<float> tile = attention.region({.layer = layer,
                                                   .head = head,
                                                   .query_begin = 7,
                                                   .query_end = 50,
                                                   .key_begin = 3,
                                                   .key_end = 31});
      ASSERT_EQ(tile.shape(), (Shape{43, 28}));
      for (std::int64_t t = 0; t < 43; ++t) {
        for (std::int64_t s = 0; s < 28; ++s) {
          EXPECT_NEAR(tile.view()(t, s), patterns[head](7 + t, 3 + s), weight_tolerance);
        }
      }
      const auto row = attention.row(layer, head, 20);
      ASSERT_EQ(row.size(), 21U);
      const auto column = attention.column(layer, head, 20);
      for (std::int64_t i = 0; i <= 20; ++i) {
        EXPECT_NEAR(row[i], patterns[head](20, i), weight_tolerance);
      }
      for (std::int64_t t = 0; t < 50; ++t) {
        EXPECT_NEAR(column[t], t < 20 ? 0.0F : patterns[head](t, 20), weight_tolerance);
      }
    }
  }
}

TEST(LazyAttention, GrowsStepByStep) {
  const Transformer transformer = testing::small_gpt(20, 64);
  const auto tokens = testing::random_tokens(30, 20, 3);
  LazyAttention whole(transformer.specification(), {1}, 30);
  LazyAttention grown(transformer.specification(), {1}, 40);
  KeyValueCache whole_cache(transformer.specification(), 1, 64);
  KeyValueCache cache(transformer.specification(), 1, 64);
  read(transformer, tokens, whole_cache, whole);
  read(transformer, std::span(tokens).first(26), cache, grown);
  for (std::int64_t i = 26; i < 30; ++i)
    read(transformer, std::span(tokens).subspan(i, 1), cache, grown);
  EXPECT_EQ(grown.positions(1), 30);
  for (const std::int64_t query : {10, 25, 26, 29}) {
    const auto expected = whole.row(1, 2, query);
    const auto row = grown.row(1, 2, query);
    for (std::size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], expected[i], weight_tolerance);
  }
  // A pass that was not observed leaves a gap.
  KeyValueCache late(transformer.specification(), 1, 64);
  LazyAttention nobody(transformer.specification(), {0}, 40);
  read(transformer, std::span(tokens).first(4), late, nobody);
  LazyAttention gap(transformer.specification(), {1}, 40);
  EXPECT_THROW(read(transformer, std::span(tokens).subspan(4, 1), late, gap), Error);
}

TEST(LazyAttention, PoolsAtEveryLevel) {
  const RandomHead head(301);
  for (const AttentionValues values : {AttentionValues::pattern, AttentionValues::scores}) {
    for (const Pooling pooling : {Pooling::mean, Pooling::max}) {
      for (std::int64_t pool = 1; pool <= 512; pool *= 2) {
        const Tensor<float> cells = head.attention.region({.head = 1,
                                                           .query_end = 301,
                                                           .key_end = 301,
                                                           .pool = pool,
                                                           .values = values,
                                                           .pooling = pooling});
        const std::int64_t side = (301 + pool - 1) / pool;
        ASSERT_EQ(cells.shape(), (Shape{side, side}));
        for (std::int64_t i = 0; i < side; ++i) {
          for (std::int64_t j = 0; j < side; ++j) {
            const double expected = head.cell(i, j, pool, values, pooling);
            if (std::isinf(expected)) {
              ASSERT_EQ(cells.view()(i, j), static_cast<float>(expected));
            } else {
              // scores reach 30, with roundings as many times as large
              ASSERT_NEAR(
                  cells.view()(i, j), expected,
                  values == AttentionValues::pattern ? weight_tolerance : 30 * weight_tolerance)
                  << pool << ": " << i << ", " << j;
            }
          }
        }
      }
    }
  }
}

TEST(LazyAttention, FindsTheMostAttended) {
  const RandomHead head(120);
  const auto attended = head.attention.most_attended(0, 1, 100, 5);
  ASSERT_EQ(attended.size(), 5U);
  std::vector<float> row = head.attention.row(0, 1, 100);
  for (const AttendedPosition& position : attended) {
    EXPECT_EQ(position.weight, row[position.position]);
  }
  std::ranges::sort(row, std::greater{});
  EXPECT_EQ(attended.front().weight, row[0]);
  EXPECT_EQ(attended.back().weight, row[4]);

  const auto attending = head.attention.most_attending(0, 1, 100, 50);
  EXPECT_EQ(attending.size(), 20U);  // the positions from 100 on
  for (std::size_t i = 0; i < attending.size(); ++i) {
    EXPECT_GE(attending[i].position, 100);
    EXPECT_NEAR(attending[i].weight, head.pattern.view()(attending[i].position, 100),
                weight_tolerance);
    EXPECT_LE(attending[i].weight, attending[i == 0 ? 0 : i - 1].weight);
  }
}

TEST(LazyAttention, RefusesWhatIsNotThere) {
  const Transformer transformer = testing::small_gpt(20, 64);
  EXPECT_THROW(LazyAttention(transformer.specification(), {2}, 10), Error);
  LazyAttention attention(transformer.specification(), {0}, 10);
  EXPECT_THROW(attention.region({.query_end = 4, .key_end = 4}), Error);  // no pass yet
  KeyValueCache cache(transformer.specification(), 1, 64);
  read(transformer, testing::random_tokens(10, 20, 3), cache, attention);
  EXPECT_THROW(attention.region({.layer = 1, .query_end = 4, .key_end = 4}), Error);
  EXPECT_THROW(attention.region({.head = 3, .query_end = 4, .key_end = 4}), Error);
  EXPECT_THROW(attention.region({.query_end = 4, .key_end = 4, .pool = 3}), Error);
  EXPECT_THROW(attention.row(0, 0, 10), Error);
  KeyValueCache long_cache(transformer.specification(), 1, 64);
  LazyAttention small(transformer.specification(), {0}, 5);
  EXPECT_THROW(read(transformer, testing::random_tokens(10, 20, 3), long_cache, small), Error);
}

// A prompt in bf16, then single tokens in f32, as in a generation with bf16 weights.
TEST(LazyAttention, UsesThePrecisionOfEachPass) {
  constexpr std::int64_t prompt = 70, positions = 73, size = 16;
  const StackSpecification config = make_gpt_config(1, 1, size, positions, 5);
  LazyAttention attention(config, {}, positions);
  const Shape shape{1, positions, 1, size};
  Tensor<float> query(shape), key(shape), out(shape), log_sum_exp(Shape{1, 1, positions});
  RandomStream random(20, 3);
  for (float& value : query.span()) value = static_cast<float>(3 * random.normal());
  for (float& value : key.span()) value = static_cast<float>(3 * random.normal());
  Tensor<float> pattern(Shape{positions, positions}), in_f32(pattern.shape());
  const auto read = [&](std::int64_t begin, std::int64_t end, kernels::Precision precision) {
    const kernels::AttentionInput<float> input{.query = query.view().slice(1, begin, end),
                                               .key = key.view().slice(1, 0, end),
                                               .value = key.view().slice(1, 0, end),
                                               .mask = kernels::Mask::causal,
                                               .scale = 0.25F,
                                               .precision = precision};
    Tensor<float> lse(Shape{1, 1, end - begin}), mixed(Shape{1, end - begin, 1, size});
    kernels::attention_forward(input, mixed, lse);
    attention.observe_attention(0, input, lse);
    Tensor<float> rows(Shape{end - begin, end});
    const kernels::AttentionTile all{0, 0, 0, end - begin, 0, end};
    kernels::attention_pattern_tile(input, lse, all, rows);
    for (std::int64_t t = begin; t < end; ++t) {
      std::copy_n(&rows.view()(t - begin, 0), end, &pattern.view()(t, 0));
    }
  };
  read(0, prompt, kernels::Precision::bf16);
  for (std::int64_t t = prompt; t < positions; ++t) read(t, t + 1, kernels::Precision::bf16);

  const Tensor<float> whole = attention.region({.query_end = positions, .key_end = positions});
  double off = 0;
  for (std::int64_t i = 0; i < whole.size(); ++i) {
    off = std::max<double>(off, std::abs(whole[i] - pattern[i]));
  }
  EXPECT_LT(off, 1e-5);  // scores of up to about 100, summed in another order
  // Products of unrounded operands differ far more, so the test distinguishes them.
  kernels::attention_forward({query, key, key, kernels::Mask::causal, 0.25F}, out, log_sum_exp);
  kernels::attention_pattern_tile({query, key, key, kernels::Mask::causal, 0.25F}, log_sum_exp,
                                  {0, 0, 0, positions, 0, positions}, in_f32);
  double apart = 0;
  for (std::int64_t i = 0; i < prompt * positions; ++i) {
    apart = std::max<double>(apart, std::abs(in_f32[i] - pattern[i]));
  }
  EXPECT_GT(apart, 1e-3);
  for (const std::int64_t pool : {2, 16, 64, 128}) {  // 70 lies inside a cell of each but the first
    for (const Pooling pooling : {Pooling::mean, Pooling::max}) {
      const AttentionRegion region{
          .query_end = positions, .key_end = positions, .pool = pool, .pooling = pooling};
      const Tensor<float> cells = attention.region(region);
      const Tensor<float> expected = finish_pooling(attention, pool_elements(whole, pool), region);
      for (std::int64_t i = 0; i < cells.size(); ++i) EXPECT_NEAR(cells[i], expected[i], 1e-6);
    }
  }
}

TEST(AttentionPyramid, EveryTileOfEveryLevelIsThePooledPattern) {
  const std::int64_t positions = 9001;  // levels 0 to 6, two of which are kept
  const StackSpecification config = make_gpt_config(1, 1, 4, positions, 5);
  LazyAttention attention(config, {}, positions);
  const Shape shape{1, positions, 1, 4};
  Tensor<float> query(shape), key(shape), out(shape), log_sum_exp(Shape{1, 1, positions});
  RandomStream random(20, 2);
  for (float& value : query.span()) value = static_cast<float>(random.normal());
  for (float& value : key.span()) value = static_cast<float>(random.normal());
  const kernels::AttentionInput<float> input{query, key, key, kernels::Mask::causal, 0.5F};
  kernels::attention_forward(input, out, log_sum_exp);
  attention.observe_attention(0, input, log_sum_exp);

  AttentionPyramid pyramid(attention, 0, 0);
  EXPECT_EQ(pyramid.levels(), 7);
  EXPECT_TRUE(pyramid.ready(4));
  EXPECT_FALSE(pyramid.ready(6));
  pyramid.build_in_background();
  for (std::int64_t level = pyramid.levels() - 1; level >= 0; --level) {
    const std::int64_t last = pyramid.tiles(level).rows - 1;
    for (const std::int64_t row : {std::int64_t{0}, last}) {
      const std::int64_t side = AttentionPyramid::tile_size << level;
      for (const Pooling pooling : {Pooling::mean, Pooling::max}) {
        const Tensor<float> tile = pyramid.tile(level, row, row / 2, pooling);
        const Tensor<float> expected = attention.region({.query_begin = row * side,
                                                         .query_end = (row + 1) * side,
                                                         .key_begin = row / 2 * side,
                                                         .key_end = (row / 2 + 1) * side,
                                                         .pool = std::int64_t{1} << level,
                                                         .pooling = pooling});
        ASSERT_EQ(tile.shape(), expected.shape());
        for (std::int64_t i = 0; i < tile.size(); ++i) {
          ASSERT_NEAR(tile[i], expected[i], weight_tolerance)
              << "level " << level << ", cell " << i;
        }
      }
    }
    EXPECT_TRUE(pyramid.ready(level));
  }
  // Every row of the pattern sums to one: the single tile of the last level holds them all.
  const Tensor<float> whole = pyramid.tile(6, 0, 0, Pooling::mean);
  double sum = 0;
  for (std::int64_t i = 0; i < whole.shape()[0]; ++i) {
    const auto rows = static_cast<double>(std::min<std::int64_t>(64, positions - 64 * i));
    for (std::int64_t j = 0; j < whole.shape()[1]; ++j) {
      const auto columns = static_cast<double>(std::min<std::int64_t>(64, positions - 64 * j));
      sum += whole.view()(i, j) * rows * columns;
    }
  }
  EXPECT_NEAR(sum / positions, 1.0, 1e-4);
  EXPECT_THROW(pyramid.tile(7, 0, 0, Pooling::mean), Error);
  EXPECT_THROW(pyramid.tile(6, 1, 0, Pooling::mean), Error);
}

TEST(AttentionPyramid, StopsBuildingOnRequest) {
  const RandomHead head(300);
  AttentionPyramid pyramid(head.attention, 0, 1);
  pyramid.build_in_background();
  const std::atomic<bool> stop{true};
  EXPECT_NO_THROW(pyramid.build(&stop));  // two levels, neither of them stored
}

}  // namespace
}  // namespace heed
