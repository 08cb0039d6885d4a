// Root mean square norms, rotary embeddings, gated activations.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

// Rows (N, C), or heads (N, H, D) inside wider rows, as a joint projection writes them.
struct RmsProblem {
  explicit RmsProblem(const cases::Matrix& rows) : RmsProblem(Shape{rows.rows, rows.columns}, 0) {}
  explicit RmsProblem(const cases::Heads& heads)
      : RmsProblem(Shape{heads.rows, heads.heads, heads.head_size}, 5) {}

  RmsProblem(const Shape& wanted, std::int64_t room)
      : shape(wanted),
        channels(wanted[wanted.rank() - 1]),
        row(wanted.size() / wanted[0] + room),
        x(random_twin(Shape{wanted[0], row}, 1, 2.0, 0.5)),
        gain(random_twin(Shape{channels}, 2, 0.3, 1.0)),
        out(x.single.shape()),
        d_out(random_twin(x.single.shape(), 4)),
        d_x(random_twin(x.single.shape(), 5)),
        reciprocal(wanted.rank() == 2 ? Shape{wanted[0]} : Shape{wanted[0], wanted[1]}),
        d_gain(random_twin(gain.single.shape(), 6)) {}

  template <class T>
  View<T> part(Tensor<T>& whole) const {
    if (shape.rank() == 2) return whole;
    return {whole.data(), shape, {row, channels, 1}};
  }
  void exact_forward() {
    reference::rms_norm_forward<double>(part(x.exact), {.gain = gain.exact, .bias = {}},
                                        part(out.exact), reciprocal.exact);
  }
  void exact_backward() {
    reference::rms_norm_backward<double>(part(x.exact), {.gain = gain.exact, .bias = {}},
                                         reciprocal.exact, part(d_out.exact), part(d_x.exact),
                                         {.gain = d_gain.exact, .bias = {}});
  }
  void forward() {
    rms_norm_forward(part(x.single), {.gain = gain.single, .bias = {}}, part(out.single),
                     reciprocal.single);
  }
  void backward() {
    rms_norm_backward(part(x.single), {.gain = gain.single, .bias = {}}, reciprocal.single,
                      part(d_out.single), part(d_x.single), {.gain = d_gain.single, .bias = {}});
  }
  std::int64_t sums() const { return shape.size() / channels; }

  Shape shape;
  std::int64_t channels, row;
  Twin x, gain, out, d_out, d_x, reciprocal, d_gain;
};

template <class Case, class Body>
void for_checked(const std::vector<Case>& shapes, Body&& body) {
  for (const Case& shape : shapes) {
    if (!cases::checked(shape.use) || shape.elements() > 1e5) continue;
    SCOPED_TRACE(shape.name());
    body(shape);
  }
}

template <class Body>
void for_rows_and_heads(Body&& body) {
  for_checked(cases::matrices(), body);
  for_checked(cases::heads(), body);
}

TEST(RmsNorm, MatchesTheReference) {
  for_rows_and_heads([](const auto& shape) {
    RmsProblem problem(shape);
    problem.exact_forward();
    problem.exact_backward();
    on_every_instruction_set([&] {
      RmsProblem fast(shape);
      fast.forward();
      fast.backward();
      // A few roundings and sums of C terms. Of a row of one channel the gradient cancels: what
      // is left of it is epsilon / x² of its terms, for an x that may be near 0.1.
      const double tolerance =
          unit_roundoff * (8.0 + std::sqrt(static_cast<double>(fast.channels)));
      EXPECT_LE(relative_error(fast.out.single, problem.out.exact), tolerance);
      EXPECT_LE(relative_error(fast.reciprocal.single, problem.reciprocal.exact), tolerance);
      EXPECT_LE(relative_error(fast.d_x.single, problem.d_x.exact), 2.0 * tolerance);
      EXPECT_LE(relative_error(fast.d_gain.single, problem.d_gain.exact),
                tolerance + unit_roundoff * std::sqrt(static_cast<double>(fast.sums())));
    });
  });
}

TEST(RmsNorm, GradientsMatchFiniteDifferences) {
  for_rows_and_heads([](const auto& shape) {
    RmsProblem problem(shape);
    if (problem.channels < 3) return;  // x/deviation is then constant or a step
    problem.d_x.exact.fill(0.0);
    problem.d_gain.exact.fill(0.0);
    problem.out.exact.fill(0.0);
    problem.exact_forward();
    problem.exact_backward();
    const auto loss = [&] {
      problem.exact_forward();
      return weigh(problem.d_out.exact, problem.out.exact);
    };
    expect_gradient(problem.x.exact, problem.d_x.exact, loss, "x");
    expect_gradient(problem.gain.exact, problem.d_gain.exact, loss, "gain");
  });
}

TEST(RmsNorm, OfHeadsMayReplaceTheGradientOfItsResult) {
  on_every_instruction_set([] {
    RmsProblem apart(cases::Heads{9, 3, 20, 0}), together(cases::Heads{9, 3, 20, 0});
    apart.forward();
    apart.backward();
    together.forward();
    rms_norm_backward(together.part(together.x.single), {.gain = together.gain.single, .bias = {}},
                      together.reciprocal.single, together.part(together.d_out.single),
                      together.part(together.d_out.single),
                      {.gain = together.d_gain.single, .bias = {}});
    for (std::int64_t n = 0; n < 9; ++n) {
      EXPECT_EQ(std::memcmp(apart.d_x.single.data() + n * apart.row,
                            together.d_out.single.data() + n * apart.row, 60 * sizeof(float)),
                0);
    }
    EXPECT_EQ(relative_error(apart.d_gain.single, together.d_gain.single), 0.0);
  });
}

TEST(RmsNorm, WrongOperandsAreNamed) {
  Tensor<float> x({2, 4}), gain({4}), out({2, 4}), reciprocal({2}), wrong({3});
  EXPECT_THROW(rms_norm_forward(x, {.gain = gain, .bias = gain}, out, reciprocal), Error);
  EXPECT_THROW(rms_norm_forward(x, {.gain = wrong, .bias = {}}, out, reciprocal), Error);
  EXPECT_THROW(rms_norm_forward(x, {.gain = gain, .bias = {}}, out, wrong), Error);
  EXPECT_THROW(rms_norm_forward(gain, {.gain = gain, .bias = {}}, gain, reciprocal), Error);
  EXPECT_NO_THROW(rms_norm_forward(x, {.gain = gain, .bias = {}}, out, reciprocal));
}

// Heads inside wider rows, and angles of a position for each row.
struct RotaryProblem {
  RotaryProblem(const cases::Heads& wanted, RotaryPairing wanted_pairing)
      : shape(wanted),
        pairing(wanted_pairing),
        row(wanted.heads * wanted.head_size + 3),
        x(random_twin(Shape{wanted.rows, row}, 1)),
        cosine(Shape{wanted.rows, wanted.rotated / 2}),
        sine(cosine.single.shape()) {
    for (std::int64_t i = 0; i < cosine.single.size(); ++i) {
      const double angle = 0.37 * static_cast<double>(i % 977);
      cosine.single[i] = static_cast<float>(std::cos(angle));
      sine.single[i] = static_cast<float>(std::sin(angle));
      cosine.exact[i] = cosine.single[i];
      sine.exact[i] = sine.single[i];
    }
  }
  template <class T>
  View<T> part(Tensor<T>& whole) const {
    return {whole.data(), {shape.rows, shape.heads, shape.head_size}, {row, shape.head_size, 1}};
  }
  RotaryTable<float> table() { return {cosine.single, sine.single, pairing}; }
  RotaryTable<double> exact_table() { return {cosine.exact, sine.exact, pairing}; }

  cases::Heads shape;
  RotaryPairing pairing;
  std::int64_t row;
  Twin x, cosine, sine;
};

constexpr RotaryPairing pairings[] = {RotaryPairing::halves, RotaryPairing::neighbours};

TEST(Rotary, MatchesTheReference) {
  for (const RotaryPairing pairing : pairings) {
    for_checked(cases::heads(), [&](const cases::Heads& shape) {
      RotaryProblem problem(shape, pairing);
      reference::rotary_forward<double>(problem.part(problem.x.exact), problem.exact_table());
      on_every_instruction_set([&] {
        RotaryProblem fast(shape, pairing);
        const Tensor<float> before = random_twin(fast.x.single.shape(), 1).single;
        rotary_forward(fast.part(fast.x.single), fast.table());
        // two products and their sum
        EXPECT_LE(relative_error(fast.x.single, problem.x.exact), 3.0 * unit_roundoff);
        rotary_backward(fast.part(fast.x.single), fast.table());
        // there and back, and cos² + sin² = 1 to a rounding
        EXPECT_LE(relative_error(fast.x.single, before), 8.0 * unit_roundoff);
        for (std::int64_t n = 0; n < shape.rows; ++n) {
          for (std::int64_t c = 0; c < fast.row; ++c) {
            const bool inside = c < shape.heads * shape.head_size;
            if (inside && c % shape.head_size < shape.rotated) continue;
            ASSERT_EQ(fast.x.single[n * fast.row + c], before[n * fast.row + c]);
          }
        }
      });
    });
  }
}

TEST(Rotary, ScoresDependOnDistance) {
  for (const RotaryPairing pairing : pairings) {
    const std::int64_t rows = 12, size = 8;
    const Twin head = random_twin({2, size}, 3);
    Tensor<float> query({rows, 1, size}), key({rows, 1, size}), cosine({rows, size / 2});
    Tensor<float> sine({rows, size / 2});
    for (std::int64_t n = 0; n < rows; ++n) {
      std::copy_n(head.single.data(), size, query.data() + n * size);
      std::copy_n(head.single.data() + size, size, key.data() + n * size);
      for (std::int64_t i = 0; i < size / 2; ++i) {
        const double angle = static_cast<double>(n) * std::pow(10000.0, -2.0 * i / size);
        cosine.view()(n, i) = static_cast<float>(std::cos(angle));
        sine.view()(n, i) = static_cast<float>(std::sin(angle));
      }
    }
    rotary_forward(query, {cosine, sine, pairing});
    rotary_forward(key, {cosine, sine, pairing});
    const auto score = [&](std::int64_t t, std::int64_t s) {
      double sum = 0.0;
      for (std::int64_t c = 0; c < size; ++c) sum += query[t * size + c] * key[s * size + c];
      return sum;
    };
    // eight products of magnitude 1, each of operands with a few roundings
    for (std::int64_t t = 3; t < rows; ++t) EXPECT_NEAR(score(t, t - 3), score(3, 0), 5e-6);
    EXPECT_GT(std::abs(score(5, 0) - score(3, 0)), 1e-3);
  }
}

TEST(Rotary, GradientsMatchFiniteDifferences) {
  for (const RotaryPairing pairing : pairings) {
    for_checked(cases::heads(), [&](const cases::Heads& shape) {
      RotaryProblem problem(shape, pairing);
      Tensor<double> weights = random_twin(problem.x.single.shape(), 7).exact;
      Tensor<double> gradient = random_twin(weights.shape(), 7).exact, out(weights.shape());
      reference::rotary_backward<double>(problem.part(gradient), problem.exact_table());
      const auto loss = [&] {
        std::copy_n(problem.x.exact.data(), out.size(), out.data());
        reference::rotary_forward<double>(problem.part(out), problem.exact_table());
        return weigh(weights, out);
      };
      expect_gradient(problem.x.exact, gradient, loss, "x");
    });
  }
}

TEST(Rotary, WrongOperandsAreNamed) {
  Tensor<float> x({2, 1, 4}), cosine({2, 2}), wide({2, 3}), few({1, 2});
  EXPECT_NO_THROW(rotary_forward(x, {cosine, cosine}));
  EXPECT_THROW(rotary_forward(x, {wide, wide}), Error);
  EXPECT_THROW(rotary_forward(x, {few, few}), Error);
  EXPECT_THROW(rotary_forward(x, {cosine, wide}), Error);
}

struct GatedProblem {
  explicit GatedProblem(const cases::Matrix& shape)
      : gate(random_twin(Shape{shape.rows, shape.columns}, 1, 3.0)),
        up(random_twin(gate.single.shape(), 2)),
        d_out(random_twin(gate.single.shape(), 3)),
        out(gate.single.shape()),
        d_gate(gate.single.shape()),
        d_up(gate.single.shape()) {}
  void exact_forward(Activation activation) {
    reference::gated_activation_forward<double>(gate.exact, up.exact, activation, out.exact);
  }
  void exact_backward(Activation activation) {
    reference::gated_activation_backward<double>(gate.exact, up.exact, activation, d_out.exact,
                                                 d_gate.exact, d_up.exact);
  }
  Twin gate, up, d_out, out, d_gate, d_up;
};

TEST(GatedActivation, MatchesTheReference) {
  for_checked(cases::matrices(), [](const cases::Matrix& shape) {
    for (const auto& row : activations) {
      const Activation activation = row.activation;
      GatedProblem problem(shape);
      problem.exact_forward(activation);
      problem.exact_backward(activation);
      on_every_instruction_set([&] {
        gated_activation_forward(problem.gate.single, problem.up.single, activation,
                                 problem.out.single);
        gated_activation_backward(problem.gate.single, problem.up.single, activation,
                                  problem.d_out.single, problem.d_gate.single, problem.d_up.single);
        for (std::int64_t i = 0; i < problem.out.single.size(); ++i) {
          // an activation errs by 5e-7 and its derivative by 8e-7 of |x| (tests of activations),
          // and is multiplied by the other operands
          const double x = std::max(1.0, std::abs(problem.gate.exact[i]));
          const double up = std::max(1.0, std::abs(problem.up.exact[i]));
          const double gradient = std::max(1.0, std::abs(problem.d_out.exact[i]));
          // (relu2 is rounded relative to x²)
          ASSERT_NEAR(problem.out.single[i], problem.out.exact[i],
                      6e-7 * std::max(x * up, std::abs(problem.out.exact[i])));
          ASSERT_NEAR(problem.d_up.single[i], problem.d_up.exact[i],
                      6e-7 * std::max(x * gradient, std::abs(problem.d_up.exact[i])));
          ASSERT_NEAR(problem.d_gate.single[i], problem.d_gate.exact[i], 9e-7 * x * up * gradient);
        }
        Tensor<float> in_place = random_twin(problem.d_out.single.shape(), 3).single;
        Tensor<float> d_up(in_place.shape());
        gated_activation_backward(problem.gate.single, problem.up.single, activation, in_place,
                                  in_place, d_up);
        EXPECT_EQ(relative_error(in_place, problem.d_gate.single), 0.0);
        EXPECT_EQ(relative_error(d_up, problem.d_up.single), 0.0);
      });
    }
  });
}

TEST(GatedActivation, GradientsMatchFiniteDifferences) {
  for (const auto& row : activations) {
    const Activation activation = row.activation;
    GatedProblem problem(cases::Matrix{9, 33});
    // away from a kink at 0
    for (double& value : problem.gate.exact.span()) value += value > 0 ? 0.01 : -0.01;
    problem.exact_backward(activation);
    const auto loss = [&] {
      problem.exact_forward(activation);
      return weigh(problem.d_out.exact, problem.out.exact);
    };
    expect_gradient(problem.gate.exact, problem.d_gate.exact, loss, "gate");
    expect_gradient(problem.up.exact, problem.d_up.exact, loss, "up");
  }
}

}  // namespace
}  // namespace heed::kernels
