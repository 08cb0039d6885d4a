// Training of sparse dictionaries against a plain implementation in double, which multiplies
// everything; and on rows whose features are known.
#include "microscope/features/dictionary_training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/expect_error.h"
#include "base/random.h"
#include "microscope/features/plain_trainer.h"

namespace heed {
namespace {

using testing::matrix_of;
using testing::PlainMatrix;
using testing::PlainTrainer;

// Rows whose mean square is 1, so that training needs no other scale.
Tensor<float> random_rows(std::int64_t rows, std::int64_t width, std::uint64_t seed) {
  RandomStream random(seed, 1);
  Tensor<float> values(Shape{rows, width});
  double squares = 0;
  for (float& value : values.span()) {
    value = static_cast<float>(random.normal());
    squares += double{value} * double{value};
  }
  const double scale = std::sqrt(squares / static_cast<double>(values.size()));
  for (float& value : values.span()) value = static_cast<float>(value / scale);
  return values;
}

void expect_near(View<const float> found, const PlainMatrix& wanted, const char* what) {
  double largest = 0, apart = 0;
  std::size_t i = 0;
  for (const std::vector<double>& row : wanted) {
    for (const double value : row) {
      largest = std::max(largest, std::abs(value));
      apart = std::max(apart, std::abs(value - double{found.span()[i++]}));
    }
  }
  // Adam divides gradients by their own size: rounding of the smallest is a part of a step of 0.01.
  EXPECT_LE(apart, 2e-5 * largest) << what;
}

void expect_plain_steps(const DictionarySettings& settings, std::int64_t outputs) {
  constexpr std::int64_t rows = 16, inputs = 6;
  const bool subtracts = inputs == outputs;
  const Tensor<float> x = random_rows(rows, inputs, 1);
  const Tensor<float> y = subtracts ? random_rows(rows, inputs, 1) : random_rows(rows, outputs, 2);
  const DictionarySpecification specification{
      .inputs = inputs,
      .outputs = outputs,
      .input_point = "blocks.0.hook_resid_pre",
      .output_points = {subtracts ? "blocks.0.hook_resid_pre" : "blocks.0.hook_mlp_out"}};
  DictionaryTrainer trainer(specification, settings, x, y);
  PlainTrainer plain(trainer.dictionary(), settings, subtracts);
  for (int step = 0; step < 4; ++step) {
    const DictionaryStep done = trainer.step(x, y);
    const auto [loss, auxiliary] = plain.step(matrix_of(x), matrix_of(y));
    EXPECT_NEAR(done.loss, loss, 1e-5 * loss) << step;
    EXPECT_NEAR(done.auxiliary, auxiliary, 1e-5 * auxiliary + 1e-12) << step;
  }
  const Dictionary found = trainer.dictionary();
  expect_near(found.weights().encoder, plain.encoder(), "W_enc");
  expect_near(found.weights().decoder, plain.decoder(), "W_dec");
  expect_near(found.weights().decoder_bias, plain.decoder_bias(), "b_dec");
  expect_near(found.weights().encoder_bias, plain.bias(), "b_enc");
  if (found.weights().threshold.present()) {
    EXPECT_NE(plain.threshold()[0][0], settings.first_threshold);
    expect_near(found.weights().threshold, plain.threshold(), "threshold");
  }
}

DictionarySettings small_settings(FeatureActivation activation) {
  return {.activation = activation,
          .features = 40,
          .k = 3,
          .l1 = 0.05,
          .l0 = 0.1,
          .bandwidth = 0.6,
          .first_threshold = 0.4,
          .learning_rate = 0.01,
          .steps = 100,
          .warmup = 0,
          .decay = 0,
          .dead_after = 17};
}

TEST(DictionaryTraining, StepsEqualPlainOnesInDouble) {
  for (const FeatureActivation activation :
       {FeatureActivation::top_k, FeatureActivation::relu, FeatureActivation::jump_relu}) {
    SCOPED_TRACE(activation_name(activation));
    expect_plain_steps(small_settings(activation), 6);
    expect_plain_steps(small_settings(activation), 5);  // of a transcoder
  }
}

// Of rows of directions, those that a feature writes.
std::int64_t matched_directions(const Dictionary& dictionary, const Tensor<float>& directions) {
  const std::int64_t width = directions.shape()[1];
  std::int64_t matched = 0;
  for (std::int64_t p = 0; p < directions.shape()[0]; ++p) {
    double best = 0;
    for (std::int64_t f = 0; f < dictionary.specification().features; ++f) {
      double along = 0, own = 0, wanted = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const double a = dictionary.weights().decoder[f * width + c];
        const double b = directions[p * width + c];
        along += a * b;
        own += a * a;
        wanted += b * b;
      }
      best = std::max(best, along / std::sqrt(own * wanted));
    }
    matched += best > 0.966;
  }
  return matched;
}

TEST(DictionaryTraining, FindsTheFeaturesThatRowsAreMadeOf) {
  constexpr std::int64_t planted = 24, width = 16, rows = 512;
  const Tensor<float> directions = random_rows(planted, width, 5);
  RandomStream random(9, 1);
  Tensor<float> x(Shape{rows, width});
  const auto draw = [&] {
    x.fill(0.0F);
    for (std::int64_t n = 0; n < rows; ++n) {
      for (int part = 0; part < 2; ++part) {
        const auto feature = static_cast<std::int64_t>(random.below(planted));
        const auto size = static_cast<float>(1 + random.uniform());
        for (std::int64_t c = 0; c < width; ++c) {
          x[n * width + c] += size * directions[feature * width + c];
        }
      }
    }
  };
  const DictionarySpecification specification{.inputs = width,
                                              .outputs = width,
                                              .input_point = "blocks.0.hook_resid_pre",
                                              .output_points = {"blocks.0.hook_resid_pre"}};
  const DictionarySettings settings{
      .features = 48, .k = 2, .learning_rate = 3e-3, .steps = 600, .dead_after = 4 * rows};
  draw();
  DictionaryTrainer trainer(specification, settings, x, x);
  const std::int64_t matched_before = matched_directions(trainer.dictionary(), directions);
  DictionaryStep last;
  for (int step = 0; step < settings.steps; ++step) {
    draw();
    last = trainer.step(x, x);
  }
  EXPECT_GT(last.explained, 0.95);
  EXPECT_LE(last.active, 2.0);
  // Directions that a row of the decoder has within 15 degrees; of the random rows that it begins
  // with, hardly any.
  EXPECT_LE(matched_before, 2);
  EXPECT_GE(matched_directions(trainer.dictionary(), directions), planted / 2);
}

// Features that were not active in a step read a row of it, with 0.2 of the others' mean norm.
TEST(DictionaryTraining, ResamplingSetsDeadFeaturesToRowsOfTheBatch) {
  constexpr std::int64_t width = 16, rows = 256, features = 64;
  Tensor<float> x = random_rows(rows, width, 1);
  // Its loss is a hundred times that of others, and so its chance ten thousand times theirs.
  for (std::int64_t c = 0; c < width; ++c) x[c] *= 10;
  const DictionarySpecification specification{.inputs = width,
                                              .outputs = width,
                                              .input_point = "blocks.0.hook_resid_pre",
                                              .output_points = {"blocks.0.hook_resid_pre"}};
  const DictionarySettings settings{.features = features,
                                    .k = 1,
                                    .steps = 1000,
                                    .dead_after = 1,  // all that is not active in this step
                                    .auxiliary = 0,
                                    .resample_every = 1};
  DictionaryTrainer trainer(specification, settings, x, x);
  const Dictionary before = trainer.dictionary();
  std::vector<bool> active(features);
  for (const std::int32_t feature : before.encode(x).features) {
    active[static_cast<std::size_t>(feature)] = true;
  }
  const DictionaryStep done = trainer.step(x, x);
  const auto silent = std::ranges::count(active, false);
  ASSERT_GT(silent, 0);
  EXPECT_EQ(done.resampled, silent);
  const Dictionary after = trainer.dictionary();
  double living = 0;
  for (std::int64_t f = 0; f < features; ++f) {
    if (!active[static_cast<std::size_t>(f)]) continue;
    double square = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      const double weight = after.weights().encoder[f * width + c];
      square += weight * weight;
    }
    living += std::sqrt(square) / static_cast<double>(features - silent);
  }
  std::int64_t of_large_loss = 0;
  for (std::int64_t f = 0; f < features; ++f) {
    if (active[static_cast<std::size_t>(f)]) continue;
    EXPECT_EQ(after.weights().encoder_bias[f], 0);
    double best = 0, written = 0, square = 0;
    std::int64_t drawn = -1;
    for (std::int64_t n = 0; n < rows; ++n) {
      double along = 0, of_row = 0, own = 0, out = 0, of_out = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const double read = double{x[n * width + c]} - double{before.weights().decoder_bias[c]};
        const double weight = after.weights().encoder[f * width + c];
        const double writes = after.weights().decoder[f * width + c];
        along += read * weight;
        out += read * writes;
        of_row += read * read;
        own += weight * weight;
        of_out += writes * writes;
      }
      square = own;
      const double cosine = along / std::sqrt(of_row * own);
      if (cosine <= best) continue;
      best = cosine;
      drawn = n;
      written = out / std::sqrt(of_row * of_out);
    }
    EXPECT_NEAR(best, 1, 1e-4) << f;
    EXPECT_NEAR(written, 1, 1e-4) << f;
    EXPECT_NEAR(std::sqrt(square), 0.2 * living, 1e-4 * living) << f;
    of_large_loss += drawn == 0 ? 1 : 0;
  }
  EXPECT_GT(of_large_loss, silent * 4 / 5);
}

TEST(DictionaryTraining, RefusesSettingsThatMakeNoSense) {
  using enum ErrorCode;
  const Tensor<float> x = random_rows(4, 6, 1);
  const DictionarySpecification specification{.inputs = 6,
                                              .outputs = 6,
                                              .input_point = "blocks.0.hook_resid_pre",
                                              .output_points = {"blocks.0.hook_resid_pre"}};
  const auto begin = [&](DictionarySettings settings) {
    DictionaryTrainer(specification, settings, x, x);
  };
  testing::expect_error(
      invalid_argument, [&] { begin({.features = 0}); }, "0 features");
  testing::expect_error(
      invalid_argument, [&] { begin({.features = 8, .k = 9}); }, "k is 9");
  testing::expect_error(
      invalid_argument, [&] { begin({.features = 8, .k = 2, .resample_every = -1}); },
      "every -1 steps");
  testing::expect_error(
      unsupported, [&] { begin({.activation = FeatureActivation::gated, .features = 8}); },
      "gated");
  const Tensor<float> nothing(Shape{4, 6});
  testing::expect_error(
      invalid_argument,
      [&] { DictionaryTrainer(specification, {.features = 8, .k = 2}, nothing, nothing); },
      "mean square of 0");
}

}  // namespace
}  // namespace heed
