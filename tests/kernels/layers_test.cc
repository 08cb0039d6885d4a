// Linear, layer norm, embedding.
#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

struct LinearProblem {
  explicit LinearProblem(const cases::Linear& wanted)
      : shape(wanted),
        x(random_twin(Shape{shape.rows, shape.inputs}, 1)),
        weight(random_twin(Shape{shape.outputs, shape.inputs}, 2)),
        bias(random_twin(Shape{shape.outputs}, 3)),
        out(Shape{shape.rows, shape.outputs}),
        d_out(random_twin(Shape{shape.rows, shape.outputs}, 4)),
        d_x(Shape{shape.rows, shape.inputs}) {
    reset_gradients();
  }
  // Something to accumulate onto.
  void reset_gradients() {
    d_weight = random_twin(weight.single.shape(), 5);
    d_bias = random_twin(bias.single.shape(), 6);
  }
  void exact_forward() {
    reference::linear_forward<double>(x.exact, {weight.exact, optional(bias.exact)}, out.exact);
  }
  void exact_backward() {
    reference::linear_backward_input<double>(weight.exact, d_out.exact, d_x.exact);
    reference::linear_backward_parameters<double>(x.exact, d_out.exact,
                                                  {d_weight.exact, optional(d_bias.exact)});
  }
  template <class T>
  View<T> optional(Tensor<T>& tensor) const {
    return shape.bias ? tensor.view() : View<T>{};
  }

  cases::Linear shape;
  Twin x, weight, bias, out, d_out, d_x, d_weight, d_bias;
};

// A sum of K products of deviates has size √K, and rounding errors that add up like a random walk,
// at most √K·u·√K/2 for sums in one chain and less for blocked ones: relative to the sum, √K·u/2.
double product_tolerance(std::int64_t inner) {
  return unit_roundoff * (2.0 + std::sqrt(static_cast<double>(inner)) / 2.0);
}

TEST(Linear, MatchesTheReference) {
  for (const cases::Linear& shape : cases::linear()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    LinearProblem problem(shape);
    problem.exact_forward();
    problem.exact_backward();
    on_every_instruction_set([&] {
      const Twin weight_start = random_twin(problem.weight.single.shape(), 5);
      const Twin bias_start = random_twin(problem.bias.single.shape(), 6);
      std::copy_n(weight_start.single.data(), weight_start.single.size(),
                  problem.d_weight.single.data());
      std::copy_n(bias_start.single.data(), bias_start.single.size(), problem.d_bias.single.data());
      problem.out.single.fill(NAN);
      problem.d_x.single.fill(NAN);
      linear_forward(problem.x.single,
                     {problem.weight.single, problem.optional(problem.bias.single)},
                     problem.out.single);
      linear_backward_input(problem.weight.single, problem.d_out.single, problem.d_x.single);
      linear_backward_parameters(
          problem.x.single, problem.d_out.single,
          {problem.d_weight.single, problem.optional(problem.d_bias.single)});
      EXPECT_LE(relative_error(problem.out), product_tolerance(shape.inputs));
      EXPECT_LE(relative_error(problem.d_x), product_tolerance(shape.outputs));
      EXPECT_LE(relative_error(problem.d_weight), product_tolerance(shape.rows));
      EXPECT_LE(relative_error(problem.d_bias), product_tolerance(shape.rows));
    });
  }
}

TEST(Linear, GradientsMatchFiniteDifferences) {
  for (const cases::Linear& shape : cases::linear()) {
    if (!cases::checked(shape.use) || shape.operations() > 5e5) continue;
    SCOPED_TRACE(shape.name());
    LinearProblem problem(shape);
    problem.d_weight.exact.fill(0.0);
    problem.d_bias.exact.fill(0.0);
    problem.exact_backward();
    const auto loss = [&] {
      problem.exact_forward();
      return weigh(problem.d_out.exact, problem.out.exact);
    };
    expect_gradient(problem.x.exact, problem.d_x.exact, loss, "x");
    expect_gradient(problem.weight.exact, problem.d_weight.exact, loss, "weight");
    if (shape.bias) expect_gradient(problem.bias.exact, problem.d_bias.exact, loss, "bias");
  }
}

// A sequence decodes alike alone and beside others.
TEST(Linear, FewRowsDoNotDependOnEachOther) {
  const std::int64_t most = 32, inputs = 100, outputs = 137;
  const Twin x = random_twin(Shape{most, inputs}, 1);
  const Twin weight = random_twin(Shape{outputs, inputs}, 2);
  on_every_instruction_set([&] {
    Tensor<float> together(Shape{most, outputs}), alone(Shape{1, outputs});
    for (std::int64_t rows = 1; rows <= most; ++rows) {
      linear_forward(x.single.view().slice(0, 0, rows), {weight.single},
                     together.view().slice(0, 0, rows));
      for (std::int64_t row = 0; row < rows; ++row) {
        linear_forward(x.single.view().slice(0, row, row + 1), {weight.single}, alone);
        for (std::int64_t o = 0; o < outputs; ++o) {
          ASSERT_EQ(alone[o], together[row * outputs + o]) << row << " of " << rows;
        }
      }
    }
  });
}

TEST(Linear, WrongShapesAreNamed) {
  Tensor<float> x(Shape{2, 3}), weight(Shape{5, 4}), out(Shape{2, 5});
  try {
    linear_forward(x, {weight}, out);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(), "x has shape (2, 3), expected (2, 4)");
  }
  Tensor<float> wide(Shape{2, 6});
  EXPECT_THROW(linear_forward(View<const float>(wide).slice(1, 0, 4), {weight}, out), Error);
}

struct NormProblem {
  NormProblem(const cases::Matrix& shape, bool with_bias)
      : x(random_twin(Shape{shape.rows, shape.columns}, 1, 2.0, 0.5)),
        gain(random_twin(Shape{shape.columns}, 2, 0.3, 1.0)),
        bias(random_twin(Shape{shape.columns}, 3)),
        out(x.single.shape()),
        d_out(random_twin(x.single.shape(), 4)),
        d_x(random_twin(x.single.shape(), 5)),
        mean(Shape{shape.rows}),
        reciprocal(Shape{shape.rows}),
        d_gain(random_twin(gain.single.shape(), 6)),
        d_bias(random_twin(gain.single.shape(), 7)),
        biased(with_bias) {}
  NormParameters<double> exact_parameters() {
    return {gain.exact, biased ? bias.exact.view() : View<double>{}};
  }
  void exact_forward() {
    reference::layer_norm_forward<double>(x.exact, exact_parameters(), out.exact,
                                          {mean.exact, reciprocal.exact});
  }
  void exact_backward() {
    reference::layer_norm_backward<double>(
        x.exact, exact_parameters(), {mean.exact, reciprocal.exact}, d_out.exact, d_x.exact,
        {d_gain.exact, biased ? d_bias.exact.view() : View<double>{}});
  }

  Twin x, gain, bias, out, d_out, d_x, mean, reciprocal, d_gain, d_bias;
  bool biased;
};

TEST(LayerNorm, MatchesTheReference) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    for (const bool biased : {false, true}) {
      NormProblem problem(shape, biased);
      problem.exact_forward();
      problem.exact_backward();
      on_every_instruction_set([&] {
        NormProblem fast(shape, biased);
        const NormParameters<float> parameters{fast.gain.single,
                                               biased ? fast.bias.single.view() : View<float>{}};
        layer_norm_forward(fast.x.single, parameters, fast.out.single,
                           {fast.mean.single, fast.reciprocal.single});
        layer_norm_backward(
            fast.x.single, parameters, {fast.mean.single, fast.reciprocal.single},
            fast.d_out.single, fast.d_x.single,
            {fast.d_gain.single, biased ? fast.d_bias.single.view() : View<float>{}});
        // A row of C = 1 or 2 has a deviation that may vanish beside its values: x − mean cancels,
        // and 1/deviation (at most 1/√epsilon ≈ 316) enlarges what rounding leaves. Longer rows
        // have deviation 2 around a mean of 0.5, a few roundings and sums of C terms.
        const double enlarged = shape.columns <= 2 ? 300.0 : 1.0;
        const double tolerance =
            unit_roundoff * (8.0 + std::sqrt(static_cast<double>(shape.columns))) * enlarged;
        EXPECT_LE(relative_error(fast.out.single, problem.out.exact), tolerance);
        EXPECT_LE(relative_error(fast.mean.single, problem.mean.exact), tolerance);
        EXPECT_LE(relative_error(fast.reciprocal.single, problem.reciprocal.exact), tolerance);
        EXPECT_LE(relative_error(fast.d_x.single, problem.d_x.exact), tolerance);
        EXPECT_LE(relative_error(fast.d_gain.single, problem.d_gain.exact),
                  tolerance + product_tolerance(shape.rows));
        EXPECT_LE(relative_error(fast.d_bias.single, problem.d_bias.exact),
                  (biased ? product_tolerance(shape.rows) : 0.0));
      });
    }
  }
}

TEST(LayerNorm, GradientsMatchFiniteDifferences) {
  for (const cases::Matrix& shape : cases::matrices()) {
    if (!cases::checked(shape.use) || shape.elements() > 1e4) continue;
    if (shape.columns < 3) continue;  // (x − mean)/deviation is then constant or a step
    SCOPED_TRACE(shape.name());
    for (const bool biased : {false, true}) {
      NormProblem problem(shape, biased);
      for (Twin* gradient : {&problem.d_x, &problem.d_gain, &problem.d_bias}) {
        gradient->exact.fill(0.0);
      }
      problem.exact_forward();
      problem.exact_backward();
      const auto loss = [&] {
        problem.exact_forward();
        return weigh(problem.d_out.exact, problem.out.exact);
      };
      expect_gradient(problem.x.exact, problem.d_x.exact, loss, "x");
      expect_gradient(problem.gain.exact, problem.d_gain.exact, loss, "gain");
      if (biased) expect_gradient(problem.bias.exact, problem.d_bias.exact, loss, "bias");
    }
  }
}

struct EmbeddingProblem {
  explicit EmbeddingProblem(const cases::Embedding& wanted)
      : shape(wanted),
        tokens(Shape{shape.batch, shape.positions}),
        token_table(random_twin(Shape{shape.vocabulary, shape.channels}, 1)),
        position_table(
            random_twin(Shape{shape.first_position + shape.positions + 1, shape.channels}, 2)),
        out(Shape{shape.batch, shape.positions, shape.channels}),
        d_out(random_twin(out.single.shape(), 3)),
        d_tokens(random_twin(token_table.single.shape(), 4)),
        d_positions(random_twin(position_table.single.shape(), 5)) {
    RandomStream random(22, 0);
    for (std::int32_t& token : tokens.span()) {
      token = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(shape.vocabulary)));
    }
  }
  template <class T>
  EmbeddingInput<T> input(Tensor<T>& table, Tensor<T>& positions) {
    return {.tokens = tokens,
            .token_table = table,
            .position_table = shape.with_positions ? positions.view() : View<T>{},
            .token_scale = shape.first_position > 0 ? T(1.5) : T(1),
            .first_position = shape.first_position};
  }
  EmbeddingInput<float> fast() { return input(token_table.single, position_table.single); }
  EmbeddingInput<double> exact() { return input(token_table.exact, position_table.exact); }

  cases::Embedding shape;
  Tensor<std::int32_t> tokens;
  Twin token_table, position_table, out, d_out, d_tokens, d_positions;
};

TEST(Embedding, MatchesTheReference) {
  for (const cases::Embedding& shape : cases::embedding()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    EmbeddingProblem exact(shape);
    reference::embedding_forward<double>(exact.exact(), exact.out.exact);
    reference::embedding_backward<double>(
        exact.exact(), exact.d_out.exact,
        {exact.d_tokens.exact,
         shape.with_positions ? exact.d_positions.exact.view() : View<double>{}});
    on_every_instruction_set([&] {
      EmbeddingProblem fast(shape);
      embedding_forward(fast.fast(), fast.out.single);
      embedding_backward(fast.fast(), fast.d_out.single,
                         {fast.d_tokens.single,
                          shape.with_positions ? fast.d_positions.single.view() : View<float>{}});
      EXPECT_LE(relative_error(fast.out.single, exact.out.exact), unit_roundoff);  // one addition
      // sums of as many terms as a token or position occurs
      const double tolerance = product_tolerance(shape.batch * shape.positions);
      EXPECT_LE(relative_error(fast.d_tokens.single, exact.d_tokens.exact), tolerance);
      if (shape.with_positions) {
        EXPECT_LE(relative_error(fast.d_positions.single, exact.d_positions.exact), tolerance);
      }
    });
  }
}

TEST(Embedding, GradientsMatchFiniteDifferences) {
  for (const cases::Embedding& shape : cases::embedding()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    EmbeddingProblem problem(shape);
    problem.d_tokens.exact.fill(0.0);
    problem.d_positions.exact.fill(0.0);
    reference::embedding_backward<double>(
        problem.exact(), problem.d_out.exact,
        {problem.d_tokens.exact,
         shape.with_positions ? problem.d_positions.exact.view() : View<double>{}});
    const auto loss = [&] {
      reference::embedding_forward<double>(problem.exact(), problem.out.exact);
      return weigh(problem.d_out.exact, problem.out.exact);
    };
    expect_gradient(problem.token_table.exact, problem.d_tokens.exact, loss, "tokens", 20);
    if (shape.with_positions) {
      expect_gradient(problem.position_table.exact, problem.d_positions.exact, loss, "positions",
                      20);
    }
  }
}

TEST(Embedding, TokensAndPositionsOutsideTheTablesAreNamed) {
  EmbeddingProblem problem({2, 3, 7, 4});
  problem.tokens[4] = 7;
  try {
    embedding_forward(problem.fast(), problem.out.single);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "token 7 at batch 1, position 1 is outside the vocabulary of 7");
  }
  problem.tokens[4] = 0;
  EmbeddingInput<float> input = problem.fast();
  input.first_position = 2;
  EXPECT_THROW(embedding_forward(input, problem.out.single), Error);
}

}  // namespace
}  // namespace heed::kernels
