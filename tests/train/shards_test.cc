#include "train/shards.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "comm/local_group.h"
#include "model/parameters.h"
#include "train/optimizer.h"

namespace heed {
namespace {

using testing::as_members;

constexpr std::size_t arena_size = (std::size_t{1} << 21) + 1234;

std::vector<float> numbers(std::size_t size, int rank) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = std::sin(static_cast<float>(i % 1000) + static_cast<float>(rank));
  }
  return values;
}

TEST(Shards, AreTheArenaInAll) {
  for (const int size : {1, 2, 3, 5}) {
    std::vector<std::vector<ArenaRange>> of(static_cast<std::size_t>(size));
    as_members(size, [&](Group& group) {
      of[static_cast<std::size_t>(group.rank())] = Shards(arena_size, group).own();
    });
    std::vector<int> owners(arena_size);
    for (const auto& ranges : of) {
      std::size_t count = 0;
      for (const ArenaRange& range : ranges) {
        count += range.size();
        for (std::size_t i = range.begin; i < range.end; ++i) ++owners[i];
      }
      // as many, up to a page
      EXPECT_NEAR(static_cast<double>(count), static_cast<double>(arena_size) / size, 1024);
    }
    EXPECT_EQ(std::ranges::count(owners, 1), static_cast<std::ptrdiff_t>(arena_size)) << size;
  }
}

TEST(Shards, AddUpAndShareWhatAllHave) {
  as_members(3, [](Group& group) {
    std::vector<float> expected = numbers(arena_size, 0);
    for (const int other : {1, 2}) {
      const auto term = numbers(arena_size, other);
      for (std::size_t i = 0; i < arena_size; ++i) expected[i] += term[i];
    }
    const Shards shards(arena_size, group);
    std::vector<float> values = numbers(arena_size, group.rank());
    shards.add_up(values);
    for (const ArenaRange& range : shards.own()) {
      ASSERT_TRUE(std::equal(values.begin() + static_cast<std::ptrdiff_t>(range.begin),
                             values.begin() + static_cast<std::ptrdiff_t>(range.end),
                             expected.begin() + static_cast<std::ptrdiff_t>(range.begin)));
    }
    shards.share(values);
    EXPECT_EQ(values, expected);
    // What each keeps of them, in pieces for all.
    std::vector<float> again;
    shards.stream_arena(values, [&](std::span<const float> piece) {
      again.insert(again.end(), piece.begin(), piece.end());
    });
    EXPECT_EQ(again, expected);
  });
}

// Every part of a model is cut for itself, large ones into several segments; slices begin at pages.
TEST(Shards, CutEveryPart) {
  as_members(3, [](Group& group) {
    const std::vector<PartRange> parts{
        {{}, 0, 160}, {{}, 160, 100'000}, {{}, 100'000, 230'000'000}};
    const Shards shards(parts, group);
    ASSERT_EQ(shards.segments().size(), 4U);
    std::size_t end = 0;
    for (const ArenaSegment& segment : shards.segments()) {
      EXPECT_EQ(segment.begin, end);
      for (int rank = 1; rank < 3; ++rank) {
        const std::size_t begin = segment.slice(rank).begin;
        EXPECT_TRUE(begin % 1024 == 0 || begin == segment.begin + segment.size()) << begin;
      }
      end += segment.size();
    }
    EXPECT_EQ(end, 230'000'000U);
  });
}

// Parts of the arena, each by the optimizer that owns them, become what one makes of all of it.
TEST(Shards, OptimizersOfPartsUpdateTheWhole) {
  const StackSpecification config = make_gpt_config(2, 2, 64, 16, 100);
  TrainSettings settings;
  settings.clip = 0.5;
  Parameters expected({.stacks = {config}});
  expected.initialize(3);
  Gradients gradients({.stacks = {config}});
  const auto random = numbers(gradients.all().size(), 2);
  std::ranges::copy(random, gradients.all().begin());
  Optimizer one(config, settings);
  double norm = 0;
  for (const int step : {0, 1, 2}) norm = one.update(step, gradients, expected);

  Parameters parameters({.stacks = {config}});
  parameters.initialize(3);
  // Odd ranges, which cut tensors.
  const std::size_t size = parameters.all().size();
  const std::vector<std::vector<ArenaRange>> owners{{{0, 1000}, {5000, 5003}},
                                                    {{1000, 5000}, {5003, size}}};
  double squared = 0;
  std::vector<Optimizer> parts;
  for (const auto& own : owners) {
    parts.emplace_back(parameters.layout(), settings, own);
    squared += parts.back().squared_norm(gradients);
  }
  EXPECT_NEAR(std::sqrt(squared), norm, 1e-6 * norm);
  for (const int step : {0, 1, 2}) {
    for (Optimizer& part : parts) {
      part.update(step, gradients, parameters, {.gradient_norm = norm});
    }
  }
  EXPECT_TRUE(std::ranges::equal(parameters.all(), expected.all()));
  EXPECT_EQ(parts[0].first_moment().size() + parts[1].first_moment().size(), size);
  EXPECT_EQ(parts[0].first_moment()[1000], one.first_moment()[5000]);
}

}  // namespace
}  // namespace heed
