// Cross-entropy, with and without label smoothing.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

struct LossProblem {
  explicit LossProblem(const cases::Logits& shape)
      : logits(random_twin(Shape{shape.rows, shape.vocabulary}, 1, 4.0)),
        targets(Shape{shape.rows}),
        losses(Shape{shape.rows}) {
    RandomStream random(23, 0);
    for (std::int32_t& target : targets.span()) {
      target =
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(shape.vocabulary)));
    }
    if (shape.rows > 3) targets[2] = ignored_target;
  }
  Twin logits;
  Tensor<std::int32_t> targets;
  Twin losses;
};

TEST(CrossEntropy, MatchesTheReference) {
  for (const cases::Logits& shape : cases::logits()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    LossProblem exact(shape);
    reference::cross_entropy_forward_backward<double>(exact.logits.exact, exact.targets, 0.125,
                                                      exact.losses.exact);
    on_every_instruction_set([&] {
      LossProblem fast(shape);
      Tensor<float> losses(fast.losses.single.shape());
      cross_entropy_forward(fast.logits.single, fast.targets, losses);
      cross_entropy_forward_backward(fast.logits.single, fast.targets, 0.125F, fast.losses.single);
      EXPECT_EQ(relative_error(losses, fast.losses.single), 0.0);
      // Logits and normalisers of up to 24 are rounded at 24·u; exponentials err by 2·u; losses
      // are differences of such numbers.
      const double tolerance = unit_roundoff * (24.0 + 8.0);
      for (std::int64_t n = 0; n < shape.rows; ++n) {
        EXPECT_NEAR(losses[n], exact.losses.exact[n], tolerance);
      }
      // Probabilities err by that much of themselves; one that is nearly 1 leaves a small gradient
      // with the error of 1.
      for (std::int64_t i = 0; i < exact.logits.exact.size(); ++i) {
        ASSERT_NEAR(fast.logits.single[i], exact.logits.exact[i], 0.125 * tolerance);
      }
    });
  }
}

TEST(CrossEntropy, GradientsMatchFiniteDifferences) {
  for (const cases::Logits& shape : cases::logits()) {
    if (!cases::checked(shape.use) || shape.elements() > 1e4) continue;
    SCOPED_TRACE(shape.name());
    LossProblem problem(shape), gradient(shape);
    reference::cross_entropy_forward_backward<double>(gradient.logits.exact, problem.targets, 0.5,
                                                      problem.losses.exact);
    const auto loss = [&] {
      reference::cross_entropy_forward<double>(problem.logits.exact, problem.targets,
                                               problem.losses.exact);
      double sum = 0.0;
      for (double value : problem.losses.exact.span()) sum += value;
      return 0.5 * sum;
    };
    expect_gradient(problem.logits.exact, gradient.logits.exact, loss, "logits");
  }
}

// Smoothed losses and their gradients, and the plain losses beside them.
TEST(CrossEntropy, SmoothedLabelsMatchTheReference) {
  for (const cases::Logits& shape : cases::logits()) {
    if (!cases::checked(shape.use)) continue;
    for (const float rate : {0.1F, 1.0F}) {
      SCOPED_TRACE(fmt::format("{}, {}", shape.name(), rate));
      LossProblem exact(shape);
      Twin smoothed(Shape{shape.rows});
      reference::cross_entropy_forward_backward<double>(
          exact.logits.exact, exact.targets, 0.125, exact.losses.exact,
          {.rate = static_cast<double>(rate), .losses = smoothed.exact});
      on_every_instruction_set([&] {
        LossProblem fast(shape), plain(shape);
        Tensor<float> first(Shape{shape.rows});
        first.fill(NAN);
        smoothed.single.fill(NAN);
        cross_entropy_forward(plain.logits.single, plain.targets, plain.losses.single);
        cross_entropy_forward(fast.logits.single, fast.targets, fast.losses.single,
                              {.rate = rate, .losses = first});
        EXPECT_EQ(relative_error(fast.losses.single, plain.losses.single), 0.0);
        cross_entropy_forward_backward(fast.logits.single, fast.targets, 0.125F, fast.losses.single,
                                       {.rate = rate, .losses = smoothed.single});
        EXPECT_EQ(relative_error(fast.losses.single, plain.losses.single), 0.0);
        EXPECT_EQ(relative_error(first, smoothed.single), 0.0);
        // As of plain losses above; differences from a normaliser of up to 24, each rounded, are
        // summed in 64 partial sums, whose roundings are relative to a mean of up to 40.
        const double mean = 40.0 * (4.0 + std::sqrt(static_cast<double>(shape.vocabulary)) / 4.0);
        const double tolerance = unit_roundoff * (24.0 + 8.0 + mean);
        for (std::int64_t n = 0; n < shape.rows; ++n) {
          EXPECT_NEAR(smoothed.single[n], smoothed.exact[n], tolerance) << n;
        }
        for (std::int64_t i = 0; i < exact.logits.exact.size(); ++i) {
          ASSERT_NEAR(fast.logits.single[i], exact.logits.exact[i], 0.125 * unit_roundoff * 34.0);
        }
      });
    }
  }
}

TEST(CrossEntropy, SmoothedGradientsMatchFiniteDifferences) {
  for (const cases::Logits& shape : cases::logits()) {
    if (!cases::checked(shape.use) || shape.elements() > 1e4) continue;
    SCOPED_TRACE(shape.name());
    LossProblem problem(shape), gradient(shape);
    Tensor<double> smoothed(Shape{shape.rows});
    const LabelSmoothing<double> smoothing{.rate = 0.3, .losses = smoothed};
    reference::cross_entropy_forward_backward<double>(gradient.logits.exact, problem.targets, 0.5,
                                                      problem.losses.exact, smoothing);
    const auto loss = [&] {
      reference::cross_entropy_forward<double>(problem.logits.exact, problem.targets,
                                               problem.losses.exact, smoothing);
      double sum = 0.0;
      for (double value : smoothed.span()) sum += value;
      return 0.5 * sum;
    };
    expect_gradient(problem.logits.exact, gradient.logits.exact, loss, "logits");
  }
}

// By hand: logits of equal probabilities lose log V however labels are smoothed, and a certain
// target loses the mean of what the others lack.
TEST(CrossEntropy, SmoothingSpreadsTheTargetOverTheVocabulary) {
  Tensor<float> logits(Shape{2, 4}), losses(Shape{2}), smoothed(Shape{2});
  Tensor<std::int32_t> targets(Shape{2});
  logits[4 + 1] = 20.0F;
  targets[1] = 1;
  cross_entropy_forward_backward(logits, targets, 1.0F, losses, {.rate = 0.2F, .losses = smoothed});
  EXPECT_NEAR(losses[0], std::log(4.0), 1e-6);
  EXPECT_NEAR(smoothed[0], std::log(4.0), 1e-6);
  EXPECT_NEAR(losses[1], 0.0, 1e-6);
  EXPECT_NEAR(smoothed[1], 0.2 * 20.0 * 3.0 / 4.0, 1e-5);
  EXPECT_NEAR(logits[0], 0.25 - 0.8 - 0.05, 1e-6);
  EXPECT_NEAR(logits[1], 0.25 - 0.05, 1e-6);
}

TEST(CrossEntropy, SmoothingByNothingChangesNoBit) {
  const cases::Logits shape{40, 301};
  on_every_instruction_set([&] {
    LossProblem plain(shape), smoothed(shape);
    Tensor<float> losses(Shape{shape.rows});
    cross_entropy_forward_backward(plain.logits.single, plain.targets, 0.3F, plain.losses.single);
    cross_entropy_forward_backward(smoothed.logits.single, smoothed.targets, 0.3F,
                                   smoothed.losses.single, {.rate = 0.0F, .losses = losses});
    EXPECT_EQ(relative_error(smoothed.logits.single, plain.logits.single), 0.0);
    EXPECT_EQ(relative_error(losses, plain.losses.single), 0.0);
  });
}

// Losses, smoothed losses and gradients of a vocabulary in pieces of `most` words.
void in_pieces(const LossProblem& problem, float rate, std::int64_t most, View<float> losses,
               View<float> smoothed, View<float> gradients) {
  const std::int64_t rows = problem.logits.single.shape()[0];
  const std::int64_t vocabulary = problem.logits.single.shape()[1];
  Tensor<float> normaliser(Shape{rows}), target(Shape{rows}), sum(Shape{rows});
  normaliser.fill(-std::numeric_limits<float>::infinity());
  const View<const float> logits = problem.logits.single;
  const auto for_each_piece = [&](const auto& body) {
    for (std::int64_t first = 0; first < vocabulary; first += most) {
      const std::int64_t words = std::min(most, vocabulary - first);
      Tensor<float> piece(Shape{rows, words});
      for (std::int64_t n = 0; n < rows; ++n) {
        for (std::int64_t v = 0; v < words; ++v) piece.view()(n, v) = logits(n, first + v);
      }
      body(VocabularyPiece{first, vocabulary}, piece.view());
    }
  };
  for_each_piece([&](const VocabularyPiece& piece, View<float> values) {
    cross_entropy_piece_forward(
        values, piece, problem.targets,
        {.normaliser = normaliser, .target_logit = target, .logit_sum = sum});
  });
  for_each_piece([&](const VocabularyPiece& piece, View<float> values) {
    cross_entropy_piece_backward(values, piece, problem.targets, normaliser, 0.125F, rate);
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t v = 0; v < values.extent(1); ++v) {
        gradients(n, piece.first + v) = values(n, v);
      }
    }
  });
  for (std::int64_t n = 0; n < rows; ++n) {
    const bool counts = problem.targets[n] != ignored_target;
    losses(n) = counts ? normaliser[n] - target[n] : 0.0F;
    const float mean = normaliser[n] - sum[n] / static_cast<float>(vocabulary);
    smoothed(n) = counts ? (1.0F - rate) * losses(n) + rate * mean : 0.0F;
  }
}

// Of the whole vocabulary at once, in double.
TEST(CrossEntropy, PiecesOfTheVocabularyMatchTheReference) {
  for (const cases::Logits& shape : cases::logits()) {
    if (!cases::checked(shape.use)) continue;
    for (const std::int64_t most : {std::int64_t{7}, shape.vocabulary / 2 + 1, shape.vocabulary}) {
      if (shape.vocabulary / most > 100) continue;
      SCOPED_TRACE(fmt::format("{}, {} words a piece", shape.name(), most));
      LossProblem exact(shape);
      Twin smoothed(Shape{shape.rows});
      reference::cross_entropy_forward_backward<double>(
          exact.logits.exact, exact.targets, 0.125, exact.losses.exact,
          {.rate = static_cast<double>(0.1F), .losses = smoothed.exact});
      on_every_instruction_set([&] {
        LossProblem fast(shape);
        Tensor<float> gradients(Shape{shape.rows, shape.vocabulary});
        in_pieces(fast, 0.1F, most, fast.losses.single, smoothed.single, gradients);
        // As of the whole; a normaliser of up to 24 is rounded, and its growth errs by 2·u, once a
        // piece. A mean of logits is of sums of random signs: rounding of their magnitude, 8.
        const double pieces = std::ceil(static_cast<double>(shape.vocabulary) / most);
        const double tolerance = unit_roundoff * (24.0 + 8.0 + 26.0 * pieces);
        for (std::int64_t n = 0; n < shape.rows; ++n) {
          EXPECT_NEAR(fast.losses.single[n], exact.losses.exact[n], tolerance) << n;
          EXPECT_NEAR(smoothed.single[n], smoothed.exact[n], tolerance + 8.0 * unit_roundoff) << n;
        }
        for (std::int64_t i = 0; i < exact.logits.exact.size(); ++i) {
          ASSERT_NEAR(gradients[i], exact.logits.exact[i], 0.125 * tolerance) << i;
        }
      });
    }
  }
}

TEST(CrossEntropy, PiecesHideNoNumberThatIsNone) {
  Tensor<float> logits(Shape{1, 2}), normaliser(Shape{1}), target(Shape{1});
  const Tensor<std::int32_t> targets(Shape{1});
  normaliser.fill(-std::numeric_limits<float>::infinity());
  const VocabularySums<float> sums{.normaliser = normaliser, .target_logit = target};
  cross_entropy_piece_forward(logits, {0, 6}, targets, sums);
  EXPECT_NEAR(normaliser[0], std::log(2.0), 1e-7);
  logits[0] = NAN;
  cross_entropy_piece_forward(logits, {2, 6}, targets, sums);
  EXPECT_TRUE(std::isnan(normaliser[0]));
  logits[0] = 0.0F;
  cross_entropy_piece_forward(logits, {4, 6}, targets, sums);
  EXPECT_TRUE(std::isnan(normaliser[0]));
}

TEST(CrossEntropy, PiecesOutsideTheVocabularyAreNamed) {
  Tensor<float> logits(Shape{3, 4}), normaliser(Shape{3}), target(Shape{3});
  const Tensor<std::int32_t> targets(Shape{3});
  const VocabularySums<float> sums{.normaliser = normaliser, .target_logit = target};
  for (const VocabularyPiece& piece : {VocabularyPiece{2, 5}, VocabularyPiece{-1, 5}}) {
    EXPECT_THROW(cross_entropy_piece_forward(logits, piece, targets, sums), Error);
    EXPECT_THROW(cross_entropy_piece_backward(logits, piece, targets, normaliser, 1.0F), Error);
  }
}

TEST(CrossEntropy, WrongSmoothingIsNamed) {
  LossProblem problem({3, 4});
  for (const float rate : {-0.1F, 1.5F, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THROW(cross_entropy_forward(problem.logits.single, problem.targets,
                                       problem.losses.single, {.rate = rate}),
                 Error);
  }
  Tensor<float> two(Shape{2});
  EXPECT_THROW(cross_entropy_forward(problem.logits.single, problem.targets, problem.losses.single,
                                     {.rate = 0.1F, .losses = two}),
               Error);
}

TEST(CrossEntropy, TargetsOutsideTheVocabularyAreNamed) {
  LossProblem problem({3, 4});
  problem.targets[1] = 4;
  try {
    cross_entropy_forward(problem.logits.single, problem.targets, problem.losses.single);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "target 4 of row 1 is outside the vocabulary of 4");
  }
}

}  // namespace
}  // namespace heed::kernels
