#include <cstring>
#include <limits>

#include "base/threads.h"
#include "kernels/attention_problem.h"
#include "kernels/dropout_hash.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"
#include "tensor/dtype.h"

namespace heed::kernels {
namespace {

TEST(Attention, ForwardAndBackwardMatchTheReference) {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    AttentionProblem problem(shape);
    problem.exact_forward();
    problem.exact_backward();
    on_every_instruction_set([&] {
      for (Twin* result : {&problem.out, &problem.d_query, &problem.d_key, &problem.d_value}) {
        result->single.fill(NAN);  // whatever is not overwritten shows
      }
      problem.forward();
      problem.backward();
      EXPECT_LE(relative_error(problem.out), problem.tolerance());
      EXPECT_LE(relative_error(problem.log_sum_exp), problem.tolerance());
      // backward chains two products behind the weights, and subtracts sums of similar size
      EXPECT_LE(relative_error(problem.d_query), 4.0 * problem.tolerance() * problem.scores_size());
      EXPECT_LE(relative_error(problem.d_key), 4.0 * problem.tolerance() * problem.scores_size());
      EXPECT_LE(relative_error(problem.d_value), 4.0 * problem.tolerance());
      if (shape.biased) {
        EXPECT_LE(relative_error(problem.d_bias), 4.0 * problem.tolerance());
      }
    });
  }
}

// Half the distance from 1 to the next bf16: the largest relative error of one rounding.
constexpr double bf16_roundoff = 1.0 / (1 << 8) / 2.0;

TEST(Attention, Bf16DiffersFromTheReferenceByTheRoundingOfWeights) {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::checked(shape.use)) continue;
    SCOPED_TRACE(shape.name());
    AttentionProblem problem(shape);
    problem.use_bf16();
    problem.exact_forward();
    problem.exact_backward();
    on_every_instruction_set([&] {
      for (Twin* result : {&problem.out, &problem.d_query, &problem.d_key, &problem.d_value}) {
        result->single.fill(NAN);
      }
      problem.forward();
      problem.backward();
      // each weight is rounded once before it meets its value, and values partly cancel
      EXPECT_LE(relative_error(problem.out), 2.0 * bf16_roundoff + problem.softmax_tolerance());
      EXPECT_LE(relative_error(problem.log_sum_exp), problem.softmax_tolerance());
      EXPECT_LE(relative_error(problem.d_value), 2.0 * bf16_roundoff + 4.0 * problem.tolerance());
      // gradients of scores are rounded, and before that lean on Σ out·d_out, whose out was; it is
      // subtracted from terms of its size
      EXPECT_LE(relative_error(problem.d_query), 4.0 * bf16_roundoff * problem.scores_size());
      EXPECT_LE(relative_error(problem.d_key), 4.0 * bf16_roundoff * problem.scores_size());
      if (shape.biased) {
        EXPECT_LE(relative_error(problem.d_bias), 4.0 * bf16_roundoff);
      }
    });
  }
}

TEST(Attention, Bf16RoundsItsOperands) {
  for (const cases::Attention& shape :
       {cases::Attention{2, 70, 90, 2, 24}, cases::Attention{2, 600, 700, 1, 64}}) {
    SCOPED_TRACE(shape.name());
    AttentionProblem rough(shape), rounded(shape);
    rough.precision = Precision::bf16;
    rounded.use_bf16();
    on_every_instruction_set([&] {
      rough.forward();
      rounded.forward();
      EXPECT_EQ(relative_error(rough.out.single, rounded.out.single), 0.0);
      EXPECT_EQ(relative_error(rough.log_sum_exp.single, rounded.log_sum_exp.single), 0.0);
      rounded.precision = Precision::f32;
      rounded.forward();
      EXPECT_GT(relative_error(rough.out.single, rounded.out.single), 1e-5);
      rounded.precision = Precision::bf16;
    });
  }
}

TEST(Attention, GradientsMatchFiniteDifferences) {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::checked(shape.use) || shape.operations() > 3e5) continue;
    SCOPED_TRACE(shape.name());
    AttentionProblem problem(shape);
    problem.exact_forward();
    problem.exact_backward();
    const auto loss = [&] {
      problem.exact_forward();
      return weigh(problem.d_out.exact, problem.out.exact);
    };
    expect_gradient(problem.query.exact, problem.d_query.exact, loss, "query", 24);
    expect_gradient(problem.key.exact, problem.d_key.exact, loss, "key", 24);
    expect_gradient(problem.value.exact, problem.d_value.exact, loss, "value", 24);
    if (shape.biased) {
      expect_gradient(problem.bias.exact, problem.d_bias.exact, loss, "position bias", 24);
    }
  }
}

// Heads as the joint projection lays them out, and a cache longer than what is attended to.
TEST(Attention, StridedViewsGiveTheSameBits) {
  const std::int64_t batch = 2, positions = 70, heads = 3, size = 24, channels = heads * size;
  Twin joint = random_twin(Shape{batch, positions, 3 * channels}, 5);
  Tensor<float> joint_gradient(joint.single.shape());
  const auto part = [&](Tensor<float>& tensor, std::int64_t index) {
    return tensor.view().slice(2, index * channels, (index + 1) * channels).split_last(heads, size);
  };
  const Shape shape{batch, positions, heads, size};
  const auto copy = [&](View<float> from) {
    Tensor<float> to(shape);
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t t = 0; t < positions; ++t) {
        for (std::int64_t h = 0; h < heads; ++h) {
          std::copy_n(&from(b, t, h, 0), size, &to.view()(b, t, h, 0));
        }
      }
    }
    return to;
  };
  const Tensor<float> query = copy(part(joint.single, 0)), key = copy(part(joint.single, 1));
  const Tensor<float> value = copy(part(joint.single, 2));
  Tensor<float> out(shape), strided_out(shape), d_query(shape), d_key(shape), d_value(shape);
  Tensor<float> log_sum_exp(Shape{batch, heads, positions});
  const AttentionInput<float> dense{query, key, value, Mask::causal, 0.2F};
  const AttentionInput<float> strided{part(joint.single, 0), part(joint.single, 1),
                                      part(joint.single, 2), Mask::causal, 0.2F};
  attention_forward(dense, out, log_sum_exp);
  attention_backward(dense, out, log_sum_exp, out, {d_query, d_key, d_value});
  attention_forward(strided, strided_out, log_sum_exp);
  attention_backward(strided, strided_out, log_sum_exp, strided_out,
                     {part(joint_gradient, 0), part(joint_gradient, 1), part(joint_gradient, 2)});
  EXPECT_EQ(relative_error(strided_out, out), 0.0);
  EXPECT_EQ(relative_error(copy(part(joint_gradient, 0)), d_query), 0.0);
  EXPECT_EQ(relative_error(copy(part(joint_gradient, 1)), d_key), 0.0);
  EXPECT_EQ(relative_error(copy(part(joint_gradient, 2)), d_value), 0.0);
}

TEST(Attention, EveryTileIsThePatternAndRowsSumToOne) {
  for (const cases::Attention& shape : cases::attention())
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      if (!cases::checked(shape.use) || shape.operations() > 2e7) continue;
      SCOPED_TRACE(shape.name() + (precision == Precision::bf16 ? " bf16" : ""));
      AttentionProblem problem(shape);
      if (precision == Precision::bf16) problem.use_bf16();
      problem.exact_forward();
      Tensor<double> exact_scores(Shape{shape.queries, shape.memory});
      Tensor<double> exact_pattern(Shape{shape.queries, shape.memory});
      const std::int64_t b = shape.batch - 1, h = shape.heads - 1;
      const AttentionTile all{b, h, 0, shape.queries, 0, shape.memory};
      reference::attention_scores_tile<double>(problem.exact_input(), all, exact_scores);
      reference::attention_pattern_tile<double>(problem.exact_input(), problem.log_sum_exp.exact,
                                                all, exact_pattern);
      on_every_instruction_set([&] {
        problem.forward();
        // a rectangle that starts and ends anywhere
        const AttentionTile tile{b,
                                 h,
                                 shape.queries / 3,
                                 shape.queries,
                                 shape.memory / 4,
                                 shape.memory - shape.memory / 5};
        const Shape extents{tile.query_end - tile.query_begin, tile.key_end - tile.key_begin};
        Tensor<float> scores(extents), pattern(extents), rows(Shape{shape.queries, shape.memory});
        attention_scores_tile(problem.input(), tile, scores);
        attention_pattern_tile(problem.input(), problem.log_sum_exp.single, tile, pattern);
        attention_pattern_tile(problem.input(), problem.log_sum_exp.single, all, rows);
        for (std::int64_t t = 0; t < extents[0]; ++t) {
          for (std::int64_t s = 0; s < extents[1]; ++s) {
            const double score = exact_scores.view()(tile.query_begin + t, tile.key_begin + s);
            const double weight = exact_pattern.view()(tile.query_begin + t, tile.key_begin + s);
            if (std::isinf(score)) {
              EXPECT_EQ(scores.view()(t, s), static_cast<float>(score));
              EXPECT_EQ(pattern.view()(t, s), 0.0F);
            } else {
              // D roundings of products as large as √D each, at worst
              EXPECT_NEAR(scores.view()(t, s), score, problem.tolerance() * 4.0);
              EXPECT_NEAR(pattern.view()(t, s), weight,
                          weight * problem.softmax_tolerance() * 4.0 + 1e-30);
            }
          }
        }
        for (std::int64_t t = 0; t < shape.queries; ++t) {
          double sum = 0.0;
          for (std::int64_t s = 0; s < shape.memory; ++s) sum += rows.view()(t, s);
          EXPECT_NEAR(sum, 1.0, 2.0 * problem.softmax_tolerance());
        }
      });
    }
}

// With values that spell out the identity, out is the kept pattern itself.
TEST(Attention, DropoutKeepsWhatTheReferenceKeeps) {
  const std::int64_t positions = 128;
  const Shape shape{1, positions, 1, positions};
  Twin query = random_twin(shape, 6, 0.1), key = random_twin(shape, 7, 0.1);
  Tensor<float> value(shape), out(shape), log_sum_exp(Shape{1, 1, positions});
  for (std::int64_t t = 0; t < positions; ++t) value[t * positions + t] = 1.0F;
  const Dropout dropout{.rate = 0.3F, .key = 0xABCDEF0123456789U};
  const AttentionInput<float> input{query.single, key.single, value, Mask::full, 0.1F, dropout};
  on_every_instruction_set([&] {
    attention_forward(input, out, log_sum_exp);
    for (std::int64_t t = 0; t < positions; ++t) {
      for (std::int64_t s = 0; s < positions; ++s) {
        ASSERT_EQ(out[t * positions + s] != 0.0F, dropout_factor<float>(dropout, t, s) != 0.0F)
            << t << ", " << s;
      }
    }
  });
}

TEST(Attention, RepeatedRunsAgreeToTheBit) {
  for (const cases::Attention& shape :
       {cases::Attention{3, 130, 150, 1, 32}, cases::Attention{1, 1, 3000, 1, 64},
        cases::Attention{2, 96, 96, 5, 40, Mask::causal, 0.1F}}) {
    SCOPED_TRACE(shape.name());
    AttentionProblem first(shape);
    first.forward();
    first.backward();
    for (int run = 0; run < 5; ++run) {
      AttentionProblem again(shape);
      again.forward();
      again.backward();
      const auto same = [](const Tensor<float>& a, const Tensor<float>& b) {
        return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 4) == 0;
      };
      EXPECT_TRUE(same(again.out.single, first.out.single));
      EXPECT_TRUE(same(again.log_sum_exp.single, first.log_sum_exp.single));
      EXPECT_TRUE(same(again.d_query.single, first.d_query.single));
      EXPECT_TRUE(same(again.d_key.single, first.d_key.single));
      EXPECT_TRUE(same(again.d_value.single, first.d_value.single));
    }
  }
}

// Which thread takes which queries, and how many at a time, changes no bit.
TEST(Attention, ThreadsDoNotChangeResults) {
  struct Restore {
    int before = thread_count();
    ~Restore() { set_thread_count(before); }
  } restore;
  const cases::Attention plain{1, 700, 900, 3, 64, Mask::causal, 0.1F};
  cases::Attention shared = plain;  // one key head, a window and a cap
  shared.group = 3;
  shared.window = 150;
  shared.soft_cap = 3.0F;
  cases::Attention decoding{1, 1, 1500, 6, 40};
  decoding.group = 6;
  for (const auto& [shape, precision] :
       {std::pair(plain, Precision::f32), std::pair(plain, Precision::bf16),
        std::pair(shared, Precision::f32), std::pair(shared, Precision::bf16),
        std::pair(decoding, Precision::f32)}) {
    SCOPED_TRACE(shape.name());
    AttentionProblem one(shape);
    one.precision = precision;
    set_thread_count(1);
    one.forward();
    one.backward();
    for (const int threads : {2, 3, 8}) {
      AttentionProblem several(one.shape);
      several.precision = precision;
      set_thread_count(threads);
      several.forward();
      EXPECT_EQ(relative_error(several.out.single, one.out.single), 0.0);
      EXPECT_EQ(relative_error(several.log_sum_exp.single, one.log_sum_exp.single), 0.0);
      several.backward();
      EXPECT_EQ(relative_error(several.d_key.single, one.d_key.single), 0.0);
      EXPECT_EQ(relative_error(several.d_value.single, one.d_value.single), 0.0);
      // the query gradient may be added up from several shares of the memory
      EXPECT_LE(relative_error(several.d_query.single, one.d_query.single), one.tolerance());
    }
  }
}

TEST(Attention, NoQueriesMeanNoGradients) {
  AttentionProblem problem(cases::Attention{1, 0, 5, 2, 8});
  problem.d_key.single.fill(NAN);
  problem.d_value.single.fill(NAN);
  problem.forward();
  problem.backward();
  EXPECT_EQ(relative_error(problem.d_key), 0.0);
  EXPECT_EQ(relative_error(problem.d_value), 0.0);
}

// Scores hundreds apart: exponentials vanish and nothing overflows.
TEST(Attention, SharpPatternsStayFinite) {
  const Shape shape{1, 80, 2, 16};
  AttentionProblem problem(cases::Attention{1, 80, 80, 2, 16});
  problem.query.randomise(8, 40.0);
  problem.key.randomise(9, 40.0);
  problem.exact_forward();
  on_every_instruction_set([&] {
    problem.forward();
    problem.backward();
    // scores reach 40·40·√16·3 ≈ 2e4, and a rounding of that is 1e-3 of a weight
    EXPECT_LE(relative_error(problem.out), 5e-3);
    for (const Twin* result : {&problem.d_query, &problem.d_key, &problem.d_value}) {
      EXPECT_TRUE(all_finite(result->single.span()));
    }
  });
}

// What is seen late outweighs everything before it by far more than exponents can hold.
TEST(Attention, MaximaMayComeLate) {
  AttentionProblem problem(cases::Attention{1, 530, 330, 1, 32, Mask::full});
  for (const std::int64_t s : {50, 200, 300}) {
    for (std::int64_t d = 0; d < 32; ++d) {
      problem.key.single[s * 32 + d] *= static_cast<float>(s);
      problem.key.exact[s * 32 + d] *= static_cast<double>(s);
    }
  }
  problem.exact_forward();
  on_every_instruction_set([&] {
    problem.forward();
    // scores reach 300·√32·2 ≈ 3e3, and a few roundings of that are 1e-3 of a weight
    EXPECT_LE(relative_error(problem.out), 2e-3);
    EXPECT_LE(relative_error(problem.log_sum_exp), problem.tolerance());
  });
}

TEST(Attention, TheLargestNumbersStayFinite) {
  AttentionProblem problem(cases::Attention{1, 513, 513, 1, 32});
  problem.value.single.fill(0.0F);
  problem.value.exact.fill(0.0);
  for (std::int64_t d = 0; d < 32; ++d) {
    problem.value.single[d] = std::numeric_limits<float>::max();
    problem.value.exact[d] = std::numeric_limits<float>::max();
  }
  problem.exact_forward();
  on_every_instruction_set([&] {
    problem.forward();
    EXPECT_TRUE(all_finite(problem.out.single.span()));
    EXPECT_LE(relative_error(problem.out), problem.tolerance());
  });
}

// A NaN must not be swallowed by a maximum: it is how a run that diverged is found out.
TEST(Attention, NotANumberComesThrough) {
  AttentionProblem problem(cases::Attention{1, 40, 40, 1, 16});
  problem.query.single[5 * 16 + 3] = NAN;
  on_every_instruction_set([&] {
    problem.forward();
    EXPECT_TRUE(std::isnan(problem.out.single[5 * 16]));
    EXPECT_FALSE(std::isnan(problem.out.single[4 * 16]));
  });
}

TEST(Attention, WrongOperandsAreNamed) {
  AttentionProblem problem(cases::Attention{2, 6, 6, 2, 8});
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
  EXPECT_NE(message([&](auto& input) { input.key = input.key.slice(3, 0, 4); }).find("key"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) { input.value = input.value.slice(1, 0, 3); }).find("value"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) {
              input.key = input.key.slice(1, 0, 3);
              input.value = input.value.slice(1, 0, 3);
            }).find("causal attention of 6 queries"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) { input.dropout.rate = 1.0F; }).find("dropout"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) {
              input.key = input.key.slice(2, 0, 0);
              input.value = input.value.slice(2, 0, 0);
            }).find("2 query heads are not a multiple of 0 key heads"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) { input.window = -1; }).find("window is -1"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) {
              input.window = 3;
              input.mask = Mask::full;
            }).find("window is 3"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) { input.soft_cap = -2.0F; }).find("soft cap is -2"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) { input.soft_cap = INFINITY; }).find("soft cap is inf"),
            std::string::npos);
  EXPECT_NE(message([&](auto& input) { input.positions = 5; }).find("a pass of 5 positions"),
            std::string::npos);
  EXPECT_EQ(message([&](auto& input) { input.positions = 6; }), "no error");
  Tensor<float> tile(Shape{3, 3});
  EXPECT_THROW(attention_scores_tile(problem.input(), {0, 2, 0, 3, 0, 3}, tile), Error);
  EXPECT_THROW(attention_scores_tile(problem.input(), {0, 0, 4, 7, 0, 3}, tile), Error);
}

}  // namespace
}  // namespace heed::kernels
