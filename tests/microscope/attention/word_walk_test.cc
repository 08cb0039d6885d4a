#include "microscope/attention/word_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "microscope/traces/capture.h"
#include "support/small_model.h"

namespace heed {
namespace {

const std::vector<std::int32_t> walked_tokens{3, 14, 15, 9, 2, 6, 5, 3, 5, 8};

// All points that a walk is compared with, of one pass.
Capture traced(const Transformer& transformer, std::int64_t layer) {
  std::vector<Point> points = word_walk_points(transformer.specification(), layer);
  points.push_back({PointKind::scores, layer});
  points.push_back({PointKind::pattern, layer});
  return trace(transformer, walked_tokens, std::move(points));
}

class WordWalkTest : public ::testing::Test {
 protected:
  // Calls inspect(walk, capture) for every head at every position.
  template <class Inspect>
  void for_every_walk(Inspect&& inspect) {
    for (std::int64_t layer = 0; layer < transformer.specification().layers; ++layer) {
      const Capture capture = traced(transformer, layer);
      for (std::int64_t head = 0; head < transformer.specification().heads(); ++head) {
        for (std::int64_t t = 0; t < std::ssize(walked_tokens); ++t) {
          inspect(walk_word(transformer, capture, layer, head, t), capture);
        }
      }
    }
  }

  Transformer transformer = testing::small_gpt(20);
};

TEST_F(WordWalkTest, OutputIsWhatTheModelComputed) {
  for_every_walk([&](const WordWalk& walk, const Capture& capture) {
    const View<const float> z = capture.at({PointKind::mixed_values, walk.layer}).view();
    for (std::int64_t i = 0; i < walk.head_size; ++i) {
      const float expected = z(0, walk.position, walk.head, i);
      // Ten values of size one, summed in f32: a few units in the last place.
      EXPECT_NEAR(walk.output[i], expected, 2e-6 * std::max(1.0F, std::abs(expected)));
      EXPECT_EQ(walk.concatenation[walk.head * walk.head_size + i], expected);
    }
  });
}

TEST_F(WordWalkTest, ScoresAndSharesAreThoseOfTheModel) {
  for_every_walk([&](const WordWalk& walk, const Capture& capture) {
    const View<const float> scores = capture.at({PointKind::scores, walk.layer}).view();
    const View<const float> pattern = capture.at({PointKind::pattern, walk.layer}).view();
    double sum = 0;
    for (const KeyAnswer& answer : walk.answers) {
      EXPECT_EQ(answer.masked, answer.position > walk.position);
      sum += answer.share;
      const float score = scores(0, walk.head, walk.position, answer.position);
      if (answer.masked) {
        EXPECT_EQ(score, -std::numeric_limits<float>::infinity());
        EXPECT_EQ(answer.share, 0.0);
      } else {
        EXPECT_NEAR(answer.scaled, score, 4e-6 * std::max(1.0F, std::abs(score)));
      }
      EXPECT_NEAR(answer.share, pattern(0, walk.head, walk.position, answer.position), 4e-6);
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
  });
}

TEST_F(WordWalkTest, HeadsAndBiasMakeUpWhatAttentionAddsToTheStream) {
  const Capture capture = traced(transformer, 1);
  std::vector<double> sum(transformer.specification().channels, 0.0);
  WordWalk walk;
  for (std::int64_t head = 0; head < transformer.specification().heads(); ++head) {
    walk = walk_word(transformer, capture, 1, head, 7);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += walk.head_projection[i];
  }
  const View<const float> bias = transformer.parameters().block(1).projection.bias;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    EXPECT_NEAR(sum[i] + bias(i), walk.attention_out[i], 1e-5 * (1 + std::abs(sum[i])));
    EXPECT_NEAR(walk.residual_before[i] + walk.attention_out[i], walk.residual_after[i], 1e-5);
  }
}

TEST_F(WordWalkTest, RefusesWhatDoesNotExist) {
  const Capture capture = traced(transformer, 0);
  EXPECT_THROW(walk_word(transformer, capture, 2, 0, 0), Error);
  EXPECT_THROW(walk_word(transformer, capture, 0, 3, 0), Error);
  EXPECT_THROW(walk_word(transformer, capture, 0, 0, std::ssize(walked_tokens)), Error);
}

}  // namespace
}  // namespace heed
