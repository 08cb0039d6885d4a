#include "microscope/explain/senses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

constexpr std::int64_t sense_width = 24;

// Six sentences of each of `senses`; vectors of a sense lie `distance` from the middle in a
// direction of their own, with noise of length about √sense_width around them, and far from the
// origin.
struct SenseSample {
  Tensor<float> vectors;
  std::vector<std::size_t> senses;
};

SenseSample sense_sample(std::size_t senses, float distance, std::uint64_t seed) {
  constexpr std::int64_t each = 6;
  SenseSample made{Tensor<float>(Shape{static_cast<std::int64_t>(senses) * each, sense_width}), {}};
  RandomStream random(seed, 0);
  for (std::size_t sense = 0; sense < senses; ++sense) {
    for (std::int64_t i = 0; i < each; ++i) {
      const auto row = static_cast<std::int64_t>(made.senses.size());
      for (std::int64_t c = 0; c < sense_width; ++c) {
        const bool is_own = c == static_cast<std::int64_t>(sense);
        made.vectors.view()(row, c) =
            100.0F + (is_own ? distance : 0.0F) + static_cast<float>(random.normal());
      }
      made.senses.push_back(sense);
    }
  }
  return made;
}

TEST(Senses, MeansOfPairsAreThoseOfCentredCosines) {
  // Centred: (1, 0), (−1, 0), (0, 2), (0, −2).
  Tensor<float> vectors(Shape{4, 2});
  const std::array<float, 8> values = {6, 5, 4, 5, 5, 7, 5, 3};
  std::ranges::copy(values, vectors.data());
  const SenseSeparation along = SenseVectors(vectors, {0, 0, 1, 1}).separation();
  EXPECT_NEAR(along.same, -1, 1e-12);
  EXPECT_NEAR(along.other, 0, 1e-12);
  const SenseSeparation across = SenseVectors(vectors, {0, 1, 0, 1}).separation();
  EXPECT_NEAR(across.same, 0, 1e-12);
  EXPECT_NEAR(across.other, -0.5, 1e-12);
}

TEST(Senses, ThatLieApartAreBeyondWhatShufflesReach) {
  for (const std::size_t senses : {2U, 3U}) {
    const SenseSample apart = sense_sample(senses, 8, 1);
    const SenseSeparation found = SenseVectors(apart.vectors, apart.senses).separation();
    EXPECT_GT(found.same, 0.4);
    EXPECT_LT(found.other, 0);
    EXPECT_GT(found.same, found.shuffled_high);
    // Of N centred vectors, the mean cosine of a pair is about −1/(N − 1), whatever their senses.
    EXPECT_NEAR(found.shuffled_same, -1.0 / (6.0 * static_cast<double>(senses) - 1), 0.05);
    // Of 12 sentences of two senses, one shuffle in 462 puts the same ones together.
    EXPECT_LE(found.p, 0.01);
    EXPECT_TRUE(found.apart());
  }
}

// The share of samples of noise that are called apart is about the level, 1 in 100.
TEST(Senses, NoiseIsApartNoMoreOftenThanChanceAllows) {
  int apart = 0, below_half = 0;
  constexpr int samples = 200;
  for (int i = 0; i < samples; ++i) {
    const SenseSample noise = sense_sample(2, 0, static_cast<std::uint64_t>(100 + i));
    const SenseSeparation found = SenseVectors(noise.vectors, noise.senses).separation();
    apart += found.apart();
    below_half += found.p < 0.5;
  }
  EXPECT_LE(apart, 8);               // binomial(200, 0.01): more has probability 0.0002
  EXPECT_NEAR(below_half, 100, 30);  // p is even over (0, 1]: 4.2 standard deviations
}

// Of eight depths of noise, the one that is most clearly apart is so no more often than one alone.
TEST(Senses, ManyDepthsOfNoiseAreNotApart) {
  int below = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<SenseSeparation> depths = {{.identical = true}};
    for (int depth = 0; depth < 8; ++depth) {
      const SenseSample noise =
          sense_sample(2, 0, static_cast<std::uint64_t>(5000 + 8 * i + depth));
      depths.push_back(SenseVectors(noise.vectors, noise.senses).separation());
    }
    below += most_apart_p(depths) <= 0.05;
    if (i > 0) continue;
    const SenseSample apart = sense_sample(2, 8, 1);
    depths.push_back(SenseVectors(apart.vectors, apart.senses).separation());
    EXPECT_LE(most_apart_p(depths), 0.01);
  }
  EXPECT_LE(below, 13);  // binomial(100, 0.05): more has probability 0.0005
  EXPECT_EQ(most_apart_p(std::vector<SenseSeparation>{{.identical = true}}), 1);
}

TEST(Senses, EqualVectorsAreNotApart) {
  SenseSample equal = sense_sample(2, 0, 1);
  equal.vectors.fill(0.1F);
  const SenseVectors vectors(equal.vectors, equal.senses);
  const SenseSeparation found = vectors.separation();
  EXPECT_TRUE(found.identical);
  EXPECT_FALSE(found.apart());
  EXPECT_EQ(found.p, 1);
  for (const PlanePoint& point : vectors.plane().points) EXPECT_EQ(point, (PlanePoint{0, 0}));
  EXPECT_FALSE(vectors.nearest(std::vector<float>(sense_width, 0.7F)).is_clear);
}

TEST(Senses, AnOwnSentenceIsNamedWhereItLiesWithOneSense) {
  const SenseSample apart = sense_sample(3, 8, 2);
  const SenseVectors vectors(apart.vectors, apart.senses);
  for (std::size_t sense = 0; sense < 3; ++sense) {
    std::vector<float> own(sense_width, 100.0F);
    own[sense] += 8;
    const NearestSense found = vectors.nearest(own);
    EXPECT_EQ(found.sense, sense);
    EXPECT_TRUE(found.is_clear);
    EXPECT_GE(found.margin, found.least);
    EXPECT_LE(found.p, 0.05);
  }
  // Nearest to one, but hardly: half-way between two, and a little further.
  std::vector<float> between(sense_width, 100.0F);
  between[0] += 4.3F;
  between[1] += 4;
  const NearestSense unclear = vectors.nearest(between);
  EXPECT_LE(unclear.sense, 1U);  // of the two
  EXPECT_LT(unclear.margin, unclear.least);
  EXPECT_FALSE(unclear.is_clear);
}

// With noise for senses, a vector is rarely called near to one of them.
TEST(Senses, AnOwnSentenceIsRarelyNamedByChance) {
  int named = 0;
  for (int i = 0; i < 200; ++i) {
    const SenseSample noise = sense_sample(2, 0, static_cast<std::uint64_t>(400 + i));
    RandomStream random(static_cast<std::uint64_t>(900 + i), 0);
    std::vector<float> own;
    for (std::int64_t c = 0; c < sense_width; ++c) {
      own.push_back(100.0F + static_cast<float>(random.normal()));
    }
    named += SenseVectors(noise.vectors, noise.senses).nearest(own).is_clear;
  }
  EXPECT_LE(named, 20);  // binomial(200, 0.05): more has probability 0.002
}

TEST(Senses, RefuseWhatCannotBeCompared) {
  const SenseSample one = sense_sample(1, 0, 1);
  EXPECT_THROW(SenseVectors(one.vectors, one.senses), Error);
  SenseSample few = sense_sample(2, 0, 1);
  std::ranges::fill(few.senses, std::size_t{0});
  few.senses.back() = 1;
  EXPECT_THROW(SenseVectors(few.vectors, few.senses), Error);
}

// The plane is that of the set: it does not know the senses, and another vector does not move it.
TEST(Senses, ThePlanePlacesItsOwnVectorsWhereTheyAre) {
  const SenseSample apart = sense_sample(2, 8, 3);
  const PrincipalPlane plane = principal_plane(apart.vectors);
  for (std::size_t i = 0; i < plane.points.size(); ++i) {
    const PlanePoint placed =
        plane.point_of(apart.vectors.view()[static_cast<std::int64_t>(i)].span());
    // Sums of 24 products of numbers of about 10, centred at 100 in f32.
    EXPECT_NEAR(placed[0], plane.points[i][0], 1e-4);
    EXPECT_NEAR(placed[1], plane.points[i][1], 1e-4);
  }
  const SenseVectors shuffled(apart.vectors, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  EXPECT_EQ(shuffled.plane().points, plane.points);
}

TEST(Senses, APlaneTurnsToTheOneBefore) {
  const std::vector<PlanePoint> points = {{3, 1}, {-2, 0.5}, {0, -2}, {1, 4}};
  const double angle = 2 * std::numbers::pi / 7;
  for (const double mirror : {1.0, -1.0}) {
    std::vector<PlanePoint> others;
    for (const PlanePoint& p : points) {
      others.push_back({std::cos(angle) * p[0] - std::sin(angle) * mirror * p[1],
                        std::sin(angle) * p[0] + std::cos(angle) * mirror * p[1]});
    }
    const PlaneTurn turn = turn_towards(points, others);
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_NEAR(turn(points[i])[0], others[i][0], 1e-12);
      EXPECT_NEAR(turn(points[i])[1], others[i][1], 1e-12);
    }
  }
  const std::vector<PlanePoint> nothing(4, PlanePoint{0, 0});
  EXPECT_EQ(turn_towards(nothing, points)({1, 2}), (PlanePoint{1, 2}));
}

}  // namespace
}  // namespace heed
