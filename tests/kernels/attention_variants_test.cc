// Windows, shared key heads and position biases, against what they stand for.
#include "kernels/attention_problem.h"

namespace heed::kernels {
namespace {

// A window that hides nothing, and a key head for each query head, are what there is without them.
TEST(AttentionVariants, AWindowOverAllIsNone) {
  for (const std::int64_t queries : {1, 3, 70, 600}) {
    AttentionProblem none(cases::Attention{1, queries, 650, 2, 40, Mask::causal, 0.1F});
    AttentionProblem wide(none.shape);
    wide.shape.window = 650;
    SCOPED_TRACE(wide.shape.name());
    on_every_instruction_set([&] {
      for (AttentionProblem* problem : {&none, &wide}) {
        problem->forward();
        problem->backward();
      }
      for (const auto& [a, b] :
           {std::pair(&none.out, &wide.out), std::pair(&none.log_sum_exp, &wide.log_sum_exp),
            std::pair(&none.d_query, &wide.d_query), std::pair(&none.d_key, &wide.d_key),
            std::pair(&none.d_value, &wide.d_value)}) {
        // AMX tiles know no windows
        const bool tiles = current_instruction_set().starts_with("AMX");
        EXPECT_LE(relative_error(a->single, b->single), tiles ? 4.0 * none.tolerance() : 0.0);
      }
    });
  }
}

TEST(AttentionVariants, SharedKeyHeadsAreAsGoodAsCopies) {
  for (const std::int64_t queries : {1, 3, 70, 600}) {
    cases::Attention shape{2, queries, 650, 6, 40};
    AttentionProblem copies(shape);
    shape.group = 3;
    AttentionProblem shared(shape);
    SCOPED_TRACE(shape.name());
    for (std::int64_t row = 0; row < 2 * 650; ++row) {
      for (std::int64_t h = 0; h < 6; ++h) {
        for (const auto& [from, to] :
             {std::pair(&shared.key, &copies.key), std::pair(&shared.value, &copies.value)}) {
          std::copy_n(from->single.data() + (row * 2 + h / 3) * 40, 40,
                      to->single.data() + (row * 6 + h) * 40);
        }
      }
    }
    on_every_instruction_set([&] {
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        for (AttentionProblem* problem : {&copies, &shared}) {
          problem->precision = precision;
          problem->forward();
          problem->backward();
        }
        EXPECT_EQ(relative_error(shared.out.single, copies.out.single), 0.0);
        EXPECT_EQ(relative_error(shared.log_sum_exp.single, copies.log_sum_exp.single), 0.0);
        // items of backward may share out the memory differently
        EXPECT_LE(relative_error(shared.d_query.single, copies.d_query.single), shared.tolerance());
        for (const auto& [whole, parts] : {std::pair(&shared.d_key, &copies.d_key),
                                           std::pair(&shared.d_value, &copies.d_value)}) {
          Tensor<float> sum(whole->single.shape());
          for (std::int64_t i = 0; i < parts->single.size(); ++i) {
            sum[i / 240 * 80 + i / 120 % 2 * 40 + i % 40] += parts->single[i];
          }
          EXPECT_LE(relative_error(whole->single, sum), shared.tolerance());
        }
      }
    });
  }
}

// One key channel that is 1 everywhere turns a query channel into a bias of its row; a bias that
// depends on the distance alone, and linearly, is a channel of positions in queries and in keys:
// slope · (s − t) = slope·s·1 − slope·t·1.
TEST(AttentionVariants, ALinearBiasIsTwoMoreChannels) {
  constexpr double slope = 0.02;
  for (const std::int64_t queries : {1, 3, 20, 70}) {
    for (const Mask mask : {Mask::causal, Mask::full}) {
      const std::int64_t memory = 90, size = 10;
      AttentionProblem biased(
          {1, queries, memory, 1, size, mask, 0.0F, cases::Use::check, 1, 0, 0.0F, true});
      AttentionProblem wider({1, queries, memory, 1, size + 2, mask});
      SCOPED_TRACE(biased.shape.name());
      const auto scale = static_cast<double>(wider.shape.scale());
      for (std::int64_t t = 0; t < queries; ++t) {
        for (std::int64_t d = 0; d < size; ++d) {
          wider.query.exact[t * (size + 2) + d] = biased.query.exact[t * size + d];
        }
        wider.query.exact[t * (size + 2) + size] = slope / scale;
        wider.query.exact[t * (size + 2) + size + 1] =
            -slope * static_cast<double>(memory - queries + t) / scale;
      }
      for (std::int64_t s = 0; s < memory; ++s) {
        for (std::int64_t d = 0; d < size; ++d) {
          wider.key.exact[s * (size + 2) + d] =
              biased.key.exact[s * size + d] * static_cast<double>(biased.shape.scale()) / scale;
          wider.value.exact[s * (size + 2) + d] = biased.value.exact[s * size + d];
        }
        wider.key.exact[s * (size + 2) + size] = static_cast<double>(s);
        wider.key.exact[s * (size + 2) + size + 1] = 1.0;
      }
      for (std::int64_t i = 0; i < biased.shape.distances(); ++i) {
        const auto distance = static_cast<double>(biased.shape.first_distance() + i);
        biased.bias.single[i] = static_cast<float>(slope * distance);
      }
      wider.exact_forward();
      on_every_instruction_set([&] {
        biased.forward();
        for (std::int64_t t = 0; t < queries; ++t) {
          for (std::int64_t d = 0; d < size; ++d) {
            // biases of up to 1.8 add a rounding of their own to each score
            EXPECT_NEAR(biased.out.single[t * size + d], wider.out.exact[t * (size + 2) + d],
                        4.0 * biased.tolerance());
          }
        }
      });
    }
  }
}

TEST(AttentionVariants, BiasGradientsAddToWhatIsThere) {
  AttentionProblem problem(
      {2, 70, 90, 4, 16, Mask::causal, 0.0F, cases::Use::check, 2, 0, 0.0F, true});
  problem.forward();
  problem.backward();
  Tensor<float> twice(problem.d_bias.single.shape());
  for (int time = 0; time < 2; ++time) {
    attention_backward(
        problem.input(), problem.out.single, problem.log_sum_exp.single, problem.d_out.single,
        {problem.d_query.single, problem.d_key.single, problem.d_value.single, twice});
  }
  for (std::int64_t i = 0; i < twice.size(); ++i) {
    EXPECT_EQ(twice[i], 2.0F * problem.d_bias.single[i]);  // doubling is exact
  }
  // behind the query everything is masked
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t i = 1 - problem.shape.first_distance(); i < problem.shape.distances(); ++i) {
      EXPECT_EQ(problem.d_bias.single[h * problem.shape.distances() + i], 0.0F);
    }
  }
}

TEST(AttentionVariants, WrongBiasesAreNamed) {
  AttentionProblem problem({1, 6, 9, 2, 8, Mask::full, 0.0F, cases::Use::check, 1, 0, 0.0F, true});
  const auto message = [&](auto change) {
    AttentionInput<float> input = problem.input();
    change(input);
    try {
      attention_forward(input, problem.out.single, problem.log_sum_exp.single);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto with = [](const Tensor<float>& values, std::int64_t first) {
    return [&values, first](auto& input) { input.position_bias = {values, first}; };
  };
  Tensor<float> exact(Shape{2, 14}), narrow(Shape{2, 13}), heads(Shape{1, 14});
  EXPECT_EQ(message(with(exact, -8)), "no error");
  EXPECT_EQ(message(with(exact, -7)), "position bias of distances -7 to 6, expected -8 to 5");
  EXPECT_EQ(message(with(narrow, -8)), "position bias of distances -8 to 4, expected -8 to 5");
  EXPECT_EQ(message(with(heads, -8)), "position bias of shape (1, 14) for 2 heads");
  EXPECT_NE(message([&](auto& input) { input.soft_cap = 2.0F; }).find("expected no cap"),
            std::string::npos);
  problem.forward();
  AttentionInput<float> unbiased = problem.input();
  unbiased.position_bias = {};
  EXPECT_THROW(attention_backward(unbiased, problem.out.single, problem.log_sum_exp.single,
                                  problem.d_out.single,
                                  {problem.d_query.single, problem.d_key.single,
                                   problem.d_value.single, problem.d_bias.single}),
               Error);
}

}  // namespace
}  // namespace heed::kernels
