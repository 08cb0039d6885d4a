#include "microscope/explain/linear_probe.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

constexpr std::int64_t probe_width = 30;

struct LabelledVectors {
  Tensor<float> vectors;
  std::vector<std::size_t> labels;
};

// Classes in turns; a class's vectors have `distance` more in the channel of its number.
LabelledVectors labelled(std::int64_t count, std::size_t classes, float distance,
                         std::uint64_t seed) {
  LabelledVectors made{Tensor<float>(Shape{count, probe_width}), {}};
  RandomStream random(seed, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    made.labels.push_back(static_cast<std::size_t>(i) % classes);
    for (std::int64_t c = 0; c < probe_width; ++c) {
      const bool is_own = static_cast<std::size_t>(c) == made.labels.back();
      made.vectors.view()(i, c) =
          5.0F + (is_own ? distance : 0.0F) + static_cast<float>(random.normal());
    }
  }
  return made;
}

TEST(LinearProbe, ReadsWhatIsLinearlyThere) {
  const LabelledVectors training = labelled(200, 4, 6, 1), held_out = labelled(80, 4, 6, 2);
  const ProbeAccuracy found =
      probe_accuracy(training.vectors, training.labels, held_out.vectors, held_out.labels, 4);
  EXPECT_GE(found.accuracy, 0.97);
  // All vectors of a class get the same reading. By chance, each of 4 classes gets the right one
  // with probability 1/4: the share of an order deviates by 0.22, the mean of five by 0.1.
  EXPECT_LT(found.shuffled, 0.6);
}

TEST(LinearProbe, ReadsNothingFromNoise) {
  const LabelledVectors training = labelled(200, 2, 0, 3), held_out = labelled(200, 2, 0, 4);
  const ProbeAccuracy found =
      probe_accuracy(training.vectors, training.labels, held_out.vectors, held_out.labels, 2);
  EXPECT_NEAR(found.accuracy, 0.5, 0.13);  // 200 coins: 3.7 standard deviations
  EXPECT_NEAR(found.shuffled, 0.5, 0.13);
}

// Whether two signs agree is in the vectors, but not linearly.
TEST(LinearProbe, DoesNotReadWhatIsNotLinear) {
  LabelledVectors training = labelled(400, 2, 0, 5);
  for (std::int64_t i = 0; i < 400; ++i) {
    const View<float> row = training.vectors.view()[i];
    training.labels[static_cast<std::size_t>(i)] = (row(0) > 5) == (row(1) > 5) ? 1 : 0;
  }
  const Tensor<float>& all = training.vectors;
  const std::span<const std::size_t> labels = training.labels;
  const ProbeAccuracy found = probe_accuracy(all.view().slice(0, 0, 300), labels.first(300),
                                             all.view().slice(0, 300, 400), labels.last(100), 2);
  EXPECT_NEAR(found.accuracy, 0.5, 0.19);  // 100 coins: 3.8 standard deviations
}

TEST(LinearProbe, ScoresAreThoseOfTheNormalEquations) {
  // One channel, x = ±1: with a ridge of 0.1 the weight of a class is ½ / 1.1 along its sign.
  Tensor<float> vectors(Shape{4, 1});
  const std::array<float, 4> values = {1, -1, 1, -1};
  std::ranges::copy(values, vectors.data());
  const std::vector<std::size_t> labels = {0, 1, 0, 1};
  const std::vector<double> scores = LinearProbe(vectors, labels, 2).scores(std::vector{1.0F});
  EXPECT_NEAR(scores[0], 0.5 + 0.5 / 1.1, 1e-12);
  EXPECT_NEAR(scores[1], 0.5 - 0.5 / 1.1, 1e-12);
}

// 0.5 and 0.8 of 100 differ by 0.3, more than 2 · √(0.0025 + 0.0016) = 0.128.
TEST(LinearProbe, BeatsAnotherByMoreThanTwoStandardErrors) {
  const ProbeAccuracy words{.accuracy = 0.5, .shuffled = 0, .held_out = 100};
  EXPECT_TRUE((ProbeAccuracy{.accuracy = 0.8, .shuffled = 0, .held_out = 100}).beats(words));
  EXPECT_FALSE((ProbeAccuracy{.accuracy = 0.6, .shuffled = 0, .held_out = 100}).beats(words));
  EXPECT_FALSE((ProbeAccuracy{.accuracy = 0.8, .shuffled = 0, .held_out = 10})
                   .beats({.accuracy = 0.5, .shuffled = 0, .held_out = 10}));
  EXPECT_FALSE(words.beats(words));
  EXPECT_FALSE(words.beats({.accuracy = 0.8, .shuffled = 0, .held_out = 100}));
}

// Of probes that read noise, hardly any beats another that does: by chance one in about fifty.
TEST(LinearProbe, BeatsNothingOnNoise) {
  int wins = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto found = [&](std::uint64_t of) {
      const LabelledVectors training = labelled(60, 2, 0, 100 + 4 * seed + of);
      const LabelledVectors held_out = labelled(60, 2, 0, 102 + 4 * seed + of);
      return probe_accuracy(training.vectors, training.labels, held_out.vectors, held_out.labels,
                            2);
    };
    wins += found(0).beats(found(1)) ? 1 : 0;
  }
  EXPECT_LE(wins, 4);  // binomial(40, 0.023): more has probability 0.002
}

TEST(LinearProbe, EqualVectorsGiveTheLargestClass) {
  Tensor<float> vectors(Shape{3, 2});
  vectors.fill(0.3F);
  const LinearProbe probe(vectors, std::vector<std::size_t>{1, 1, 0}, 2);
  EXPECT_EQ(probe.read(std::vector{0.3F, 0.3F}), 1U);
}

TEST(LinearProbe, RefusesWhatCannotBeTrained) {
  const Tensor<float> none(Shape{0, 3});
  EXPECT_THROW(LinearProbe(none, {}, 2), Error);
  const LabelledVectors one = labelled(4, 1, 0, 1);
  EXPECT_THROW(LinearProbe(one.vectors, one.labels, 1), Error);
}

}  // namespace
}  // namespace heed
