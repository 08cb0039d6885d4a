#include "microscope/traces/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/blocks_read.h"
#include "support/small_model.h"

namespace heed {
namespace {

TEST(Glob, StarStandsForAnything) {
  EXPECT_TRUE(matches_glob("blocks.3.attn.hook_q", "blocks.3.attn.hook_q"));
  EXPECT_TRUE(matches_glob("blocks.3.attn.hook_q", "blocks.*.attn.hook_q"));
  EXPECT_TRUE(matches_glob("blocks.3.attn.hook_q", "*"));
  EXPECT_TRUE(matches_glob("blocks.3.attn.hook_q", "*hook_q*"));
  EXPECT_FALSE(matches_glob("blocks.3.attn.hook_q", "blocks.*.hook_k"));
  EXPECT_FALSE(matches_glob("blocks.3.attn.hook_q", "blocks.3"));
  EXPECT_FALSE(matches_glob("", "blocks"));
  EXPECT_TRUE(matches_glob("", "**"));
  EXPECT_TRUE(matches_glob("abcabd", "*ab*d"));
  EXPECT_FALSE(matches_glob("abcabd", "*d*ab"));
}

// Tried every way, 24 stars in a name of 72 letters are more than 10^19 ways.
TEST(Glob, ManyStarsTakeNoTime) {
  std::string pattern, name;
  for (int i = 0; i < 24; ++i) {
    pattern += "*a";
    name += "aaa";
  }
  EXPECT_TRUE(matches_glob(name, pattern));
  EXPECT_FALSE(matches_glob(name, pattern + "b"));
}

TEST(Capture, KeepsWhatWasAskedForAndNothingElse) {
  const Transformer transformer = testing::small_gpt(20);
  const Capture wanted({"blocks.*.attn.hook_pattern", "ln_final.hook_scale"},
                       transformer.specification());
  EXPECT_EQ(wanted.points().size(), 3U);
  const Capture capture =
      trace(transformer, std::vector<std::int32_t>{1, 2, 3, 4}, wanted.points());
  EXPECT_EQ(capture.at({PointKind::pattern, 1}).shape(), (Shape{1, 3, 4, 4}));
  EXPECT_EQ(capture.at({PointKind::final_scale}).shape(), (Shape{1, 4, 1}));
  EXPECT_THROW(capture.at({PointKind::query, 0}), Error);
}

TEST(Capture, CopiesStridedViews) {
  const std::vector<float> numbers{0, 1, 2, 3, 4, 5, 6, 7};
  const View<const float> matrix(numbers.data(), {2, 4});
  Capture capture({Point{PointKind::embedding}});
  capture.observe({PointKind::embedding}, matrix.slice(1, 1, 3));
  EXPECT_THAT(capture.at({PointKind::embedding}).span(), ::testing::ElementsAre(1, 2, 5, 6));
}

TEST(Capture, RefusesNamesThatNoPointHas) {
  const StackSpecification stack = make_gpt_config(2, 3, 24, 64, 20);
  EXPECT_THROW(Capture({"blocks.2.attn.hook_q"}, stack), Error);
  EXPECT_THROW(Capture({"blocks.*.hook_nothing"}, stack), Error);
}

// The same numbers as of a whole pass, to the bit.
TEST(Trace, ComputesTheBlocksUpToTheLastWantedPointAlone) {
  Transformer transformer = testing::small_gpt(20);
  const std::vector<std::int32_t> tokens{1, 2, 3, 4};
  const std::vector<Point> points = all_points(transformer.specification());
  const Capture whole = trace(transformer, tokens, points);
  testing::BlocksRead blocks(transformer);
  std::set<std::int64_t> expected;
  for (const Point& point : points) {
    if (point.layer >= 0) expected.insert(point.layer);
    const Capture capture = trace(transformer, tokens, {point});
    EXPECT_THAT(capture.at(point).span(), ::testing::ElementsAreArray(whole.at(point).span()))
        << point_name(point);
    EXPECT_EQ(blocks.taken(), expected) << point_name(point);
  }
  trace(transformer, tokens, {{PointKind::neurons_post, 1}, {PointKind::embedding}});
  EXPECT_EQ(blocks.taken(), (std::set<std::int64_t>{0, 1}));
}

TEST(Trace, RefusesTextsThatTheModelCannotRead) {
  const Transformer transformer = testing::small_gpt(20, 4);
  EXPECT_THROW(trace_patterns(transformer, {}), Error);
  EXPECT_THROW(trace_patterns(transformer, std::vector<std::int32_t>(5, 1)), Error);
  EXPECT_THROW(trace_patterns(transformer, std::vector<std::int32_t>{20}), Error);
}

}  // namespace
}  // namespace heed
