// Activations, dropout, addition, and what runs over arenas.
#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "base/threads.h"
#include "kernels/cases.h"
#include "kernels/dropout_hash.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

TEST(Activation, MatchesTheReference) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    Twin x = random_twin(Shape{shape.rows, shape.columns}, 1, 3.0);
    Twin d_out = random_twin(x.single.shape(), 2), out(x.single.shape()), d_x(x.single.shape());
    for (const auto& row : activations) {
      const Activation activation = row.activation;
      reference::activation_forward<double>(x.exact, activation, out.exact);
      reference::activation_backward<double>(x.exact, activation, d_out.exact, d_x.exact);
      on_every_instruction_set([&] {
        activation_forward(x.single, activation, out.single);
        activation_backward(x.single, activation, d_out.single, d_x.single);
        for (std::int64_t i = 0; i < x.single.size(); ++i) {
          // Φ and the logistic function err by at most 3.1e-7 (vector_math-inl.h), scaled by x; the
          // derivative adds x·φ, whose exponent x²/2 is rounded: x·x²·φ(x)·u < 1e-7.
          const double size = std::max({1.0, std::abs(x.exact[i]), std::abs(out.exact[i])});
          ASSERT_NEAR(out.single[i], out.exact[i], 5e-7 * size) << "x = " << x.exact[i];
          ASSERT_NEAR(d_x.single[i], d_x.exact[i],
                      8e-7 * size * std::max(1.0, std::abs(d_out.exact[i])))
              << "x = " << x.exact[i];
        }
      });
    }
  }
}

TEST(SoftCap, MatchesTheReference) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    Twin x = random_twin(Shape{shape.rows, shape.columns}, 1, 6.0);
    Twin d_out = random_twin(x.single.shape(), 2), out(x.single.shape()), d_x(x.single.shape());
    constexpr double cap = 3.5;
    reference::soft_cap_forward<double>(x.exact, cap, out.exact);
    reference::soft_cap_backward<double>(out.exact, cap, d_out.exact, d_x.exact);
    on_every_instruction_set([&] {
      soft_cap_forward(x.single, cap, out.single);
      soft_cap_backward(out.single, cap, d_out.single, d_x.single);
      for (std::int64_t i = 0; i < x.single.size(); ++i) {
        // A division, a tanh of a few units in the last place, and a product; the derivative is 1
        // less a square whose relative error is twice that.
        ASSERT_NEAR(out.single[i], out.exact[i], 5e-7 * cap) << "x = " << x.exact[i];
        ASSERT_NEAR(d_x.single[i], d_x.exact[i], 2e-6 * std::max(1.0, std::abs(d_out.exact[i])))
            << "x = " << x.exact[i];
      }
      // In place, and as a linear layer caps its outputs.
      soft_cap_backward(out.single, cap, d_x.single, d_x.single);
    });
    Tensor<double> above(x.exact.shape()), below(x.exact.shape());
    constexpr double step = 1e-6;
    for (std::int64_t i = 0; i < x.exact.size(); ++i) {
      above[i] = x.exact[i] + step;
      below[i] = x.exact[i] - step;
    }
    reference::soft_cap_forward<double>(above, cap, above);
    reference::soft_cap_forward<double>(below, cap, below);
    for (std::int64_t i = 0; i < x.exact.size(); ++i) {
      // Differences err by step² and by rounding over the step, 1e-10.
      ASSERT_NEAR((above[i] - below[i]) / (2 * step) * d_out.exact[i], d_x.exact[i], 1e-8);
    }
  }
}

TEST(SoftCap, IsAppliedToTheOutputsOfALinearLayer) {
  const Twin x = random_twin(Shape{5, 7}, 1), weight = random_twin(Shape{9, 7}, 2);
  Tensor<double> expected(Shape{5, 9});
  reference::linear_forward<double>(x.exact, {.weight = weight.exact, .soft_cap = 1.5}, expected);
  on_every_instruction_set([&] {
    for (const std::int64_t positions : {std::int64_t{0}, decoding_step}) {
      Tensor<float> out(Shape{5, 9});
      linear_forward(x.single, {.weight = weight.single, .soft_cap = 1.5F}, out, positions);
      for (std::int64_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 2e-6);
    }
  });
  EXPECT_LT(*std::ranges::max_element(expected.span()), 1.5);
}

TEST(Activation, RowsAreInOrderAndNamesAreUnique) {
  std::set<std::string_view> names;
  for (const ActivationDescription& row : activations) {
    EXPECT_EQ(description_of(row.activation).activation, row.activation);
    EXPECT_FALSE(row.names.front().empty());
    for (const std::string_view name : row.names) {
      EXPECT_TRUE(name.empty() || names.insert(name).second) << name;
    }
  }
}

TEST(Activation, SquaredReluIsTheSquareOfRelu) {
  Tensor<float> x(Shape{4}), out(Shape{4}), d_out(Shape{4}), d_x(Shape{4});
  std::ranges::copy(std::vector<float>{-3, 0, 0.5F, 4}, x.data());
  d_out.fill(3.0F);
  on_every_instruction_set([&] {
    activation_forward(x, Activation::relu2, out);
    activation_backward(x, Activation::relu2, d_out, d_x);
    EXPECT_THAT(std::vector<float>(out.span().begin(), out.span().end()),
                ::testing::ElementsAre(0, 0, 0.25F, 16));
    EXPECT_THAT(std::vector<float>(d_x.span().begin(), d_x.span().end()),
                ::testing::ElementsAre(0, 0, 3, 24));
  });
}

TEST(Activation, EveryMagnitudeIsFiniteAndRight) {
  std::vector<float> points = {0.0F, -0.0F, 1e-30F, -1e-30F, 1e30F, -1e30F, 3e38F, -3e38F};
  for (float x = -60.0F; x <= 60.0F; x += 0.01F) points.push_back(x);
  const Shape shape{static_cast<std::int64_t>(points.size())};
  Twin x(shape), out(shape), ones(shape), d_x(shape);
  for (std::int64_t i = 0; i < x.single.size(); ++i) {
    x.single[i] = points[static_cast<std::size_t>(i)];
    x.exact[i] = static_cast<double>(x.single[i]);
  }
  ones.single.fill(1.0F);
  ones.exact.fill(1.0);
  for (const auto& row : activations) {
    const Activation activation = row.activation;
    // x³ of 1e30 is beyond double's tanh argument but not beyond double
    reference::activation_forward<double>(x.exact, activation, out.exact);
    on_every_instruction_set([&] {
      activation_forward(x.single, activation, out.single);
      activation_backward(x.single, activation, ones.single, d_x.single);
      for (std::int64_t i = 0; i < x.single.size(); ++i) {
        if (out.exact[i] > std::numeric_limits<float>::max()) {
          ASSERT_EQ(out.single[i], std::numeric_limits<float>::infinity());
          continue;
        }
        ASSERT_NEAR(out.single[i], out.exact[i],
                    5e-7 * std::max({1.0, std::abs(x.exact[i]), std::abs(out.exact[i])}))
            << "x = " << x.exact[i];
        if (std::abs(x.exact[i]) < 1e6) {
          ASSERT_TRUE(std::isfinite(d_x.single[i])) << x.exact[i];
        }
      }
    });
  }
}

TEST(Activation, GradientsMatchFiniteDifferences) {
  for (const auto& row : activations) {
    const Activation activation = row.activation;
    Twin x = random_twin(Shape{9, 33}, 3, 2.0), d_out = random_twin(x.single.shape(), 4);
    // away from a kink at 0
    for (double& value : x.exact.span()) value += value > 0 ? 0.01 : -0.01;
    Tensor<double> out(x.single.shape()), d_x(x.single.shape());
    reference::activation_backward<double>(x.exact, activation, d_out.exact, d_x);
    const auto loss = [&] {
      reference::activation_forward<double>(x.exact, activation, out);
      return weigh(d_out.exact, out);
    };
    expect_gradient(x.exact, d_x, loss, "x", 300);
  }
}

TEST(Dropout, IsTheSameToTheBitAndKeepsTheRightFraction) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    const Twin x = random_twin(Shape{shape.rows, shape.columns}, 1, 1.0, 5.0);
    for (const float rate : {0.0F, 0.1F, 0.5F, 0.9F}) {
      const Dropout settings{.rate = rate, .key = 1234567890123ULL};
      Tensor<float> expected(x.single.shape()), out(x.single.shape());
      reference::dropout<float>(x.single, settings, expected);
      on_every_instruction_set([&] {
        dropout(x.single, settings, out);
        EXPECT_EQ(relative_error(out, expected), 0.0);
      });
      // A fraction of N independent decisions deviates by √(rate·(1 − rate)/N); five of those
      // happen once in two million.
      const double kept = static_cast<double>(
          std::count_if(out.span().begin(), out.span().end(), [](float v) { return v != 0; }));
      const double fraction = 1.0 - static_cast<double>(rate);
      EXPECT_NEAR(kept / shape.elements(), fraction,
                  5.0 * std::sqrt(fraction * (1.0 - fraction) / shape.elements()) + 1e-12);
    }
  }
}

// Rows, columns and keys must look unrelated: of two masks with half the elements kept, a quarter
// coincide.
TEST(Dropout, MasksOfDifferentKeysAndRowsAreUnrelated) {
  const std::int64_t size = 1 << 16;
  const auto both_kept = [&](std::uint64_t key1, std::uint64_t row1, std::uint64_t key2,
                             std::uint64_t row2, std::uint32_t shift) {
    const std::uint32_t first = dropout_row_key({.rate = 0.5F, .key = key1}, row1);
    const std::uint32_t second = dropout_row_key({.rate = 0.5F, .key = key2}, row2);
    std::int64_t count = 0;
    for (std::uint32_t c = 0; c < size; ++c) {
      count += dropout_bits(first, c) >= dropout_threshold(0.5F) &&
               dropout_bits(second, c + shift) >= dropout_threshold(0.5F);
    }
    return static_cast<double>(count) / static_cast<double>(size);
  };
  const double bound = 5.0 * std::sqrt(0.25 * 0.75 / static_cast<double>(size));
  EXPECT_NEAR(both_kept(1, 0, 2, 0, 0), 0.25, bound);
  EXPECT_NEAR(both_kept(1, 0, 1, 1, 0), 0.25, bound);
  EXPECT_NEAR(both_kept(1, 5, 1, 5, 1), 0.25, bound);
  EXPECT_NEAR(both_kept(7, 3, 8, 2, 0), 0.25, bound);
}

TEST(Add, IsOneRoundingAndMayBeInPlace) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    on_every_instruction_set([&] {
      Twin x = random_twin(Shape{shape.rows, shape.columns}, 1);
      const Twin y = random_twin(Shape{shape.rows, shape.columns}, 2);
      Tensor<float> expected(x.single.shape());
      reference::add<float>(x.single, y.single, expected);
      add(x.single, y.single, x.single);
      EXPECT_EQ(relative_error(x.single, expected), 0.0);
    });
  }
}

TEST(AdamW, FollowsTheFormulaInDouble) {
  for (const cases::Arena& shape : cases::arenas()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    on_every_instruction_set([&] {
      Twin parameters = random_twin(Shape{shape.size}, 1),
           gradients = random_twin(Shape{shape.size}, 2);
      Twin first(Shape{shape.size}), second(Shape{shape.size});
      for (std::int64_t step = 1; step <= 3; ++step) {
        const AdamWStep<float> settings{
            .learning_rate = 0.01F, .weight_decay = 0.1F, .gradient_scale = 0.5F, .step = step};
        const AdamWStep<double> exact_settings{
            .learning_rate = static_cast<double>(settings.learning_rate),
            .beta1 = static_cast<double>(settings.beta1),
            .beta2 = static_cast<double>(settings.beta2),
            .epsilon = static_cast<double>(settings.epsilon),
            .weight_decay = static_cast<double>(settings.weight_decay),
            .gradient_scale = 0.5,
            .step = step};
        adamw_step({parameters.single.span(), gradients.single.span(), first.single.span(),
                    second.single.span()},
                   settings);
        reference::adamw_step<double>({parameters.exact.span(), gradients.exact.span(),
                                       first.exact.span(), second.exact.span()},
                                      exact_settings);
      }
      // Each step rounds a parameter once (u, three steps) and changes it by 0.01 with a few
      // roundings; 1 − beta is rounded relative to beta, 20·u of itself.
      EXPECT_LE(relative_error(parameters), 6.0 * unit_roundoff);
      EXPECT_LE(relative_error(first), 12.0 * unit_roundoff);
      EXPECT_LE(relative_error(second), 24.0 * unit_roundoff);
    });
  }
}

TEST(Arenas, NormIsDoubleAndIndependentOfThreads) {
  for (const cases::Arena& shape : cases::arenas()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    const Twin x = random_twin(Shape{shape.size}, 1);
    const double expected = reference::squared_norm<double>(x.exact.span());
    on_every_instruction_set([&] {
      const double norm = squared_norm(x.single.span());
      // the reference's one chain of n roundings, each of 1.1e-16 of what is summed so far
      EXPECT_NEAR(norm, expected, 1e-15 * std::sqrt(static_cast<double>(shape.size)) * expected);
      const int threads = thread_count();
      set_thread_count(threads == 1 ? 2 : 1);
      EXPECT_EQ(squared_norm(x.single.span()), norm);
      set_thread_count(threads);
    });
  }
}

TEST(Arenas, WhatIsNotFiniteIsFoundAnywhere) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t size : {1, 17, 70001}) {
    Tensor<float> x(Shape{size});
    x.fill(-std::numeric_limits<float>::max());
    on_every_instruction_set([&] {
      EXPECT_TRUE(all_finite(x.span()));
      for (const std::int64_t at : {std::int64_t{0}, size / 2, size - 1}) {
        for (const float bad : {NAN, -NAN, infinity, -infinity}) {
          const float before = x[at];
          x[at] = bad;
          EXPECT_FALSE(all_finite(x.span())) << at << " of " << size;
          x[at] = before;
        }
      }
    });
  }
  EXPECT_TRUE(all_finite({}));
}

TEST(InstructionSets, CanBeChosenAndNamed) {
  const std::vector<std::string> names = available_instruction_sets();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(current_instruction_set(), names.front());
  for (const std::string& name : names) {
    use_instruction_set(name);
    EXPECT_EQ(current_instruction_set(), name);
    EXPECT_EQ(available_instruction_sets(), names) << name;
  }
  use_instruction_set("");
  EXPECT_EQ(current_instruction_set(), names.front());
  EXPECT_THROW(use_instruction_set("MMX"), Error);
}

}  // namespace
}  // namespace heed::kernels
