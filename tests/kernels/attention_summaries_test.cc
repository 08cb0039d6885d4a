#include "kernels/attention_summaries.h"

#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

// The operands of one case, and tokens few enough that copies are frequent.
struct SummaryProblem {
  explicit SummaryProblem(const cases::Attention& wanted) : shape(wanted) {
    query = random_twin(Shape{shape.batch, shape.queries, shape.heads, shape.head_size}, 1);
    key = random_twin(Shape{shape.batch, shape.memory, shape.key_heads(), shape.head_size}, 2);
    value = random_twin(key.single.shape(), 3);
    if (shape.biased) bias = random_twin(Shape{shape.heads, shape.distances()}, 5);
    log_sum_exp = Twin(Shape{shape.batch, shape.heads, shape.queries});
    Twin out(query.single.shape());
    attention_forward(input(), out.single, log_sum_exp.single);
    for (std::int64_t i = 0; i < log_sum_exp.single.size(); ++i) {
      log_sum_exp.exact[i] = log_sum_exp.single[i];
    }
    tokens = Tensor<std::int32_t>(Shape{shape.batch, shape.memory});
    RandomStream random(20, 4);
    for (std::int32_t& token : tokens.span()) token = static_cast<std::int32_t>(random.below(7));
  }

  AttentionInput<float> input() const {
    return {.query = query.single,
            .key = key.single,
            .value = value.single,
            .mask = shape.mask,
            .scale = shape.scale(),
            .window = shape.window,
            .soft_cap = shape.soft_cap,
            .position_bias = position_bias<float>(bias.single)};
  }
  AttentionInput<double> exact_input() const {
    return {.query = query.exact,
            .key = key.exact,
            .value = value.exact,
            .mask = shape.mask,
            .scale = static_cast<double>(shape.scale()),
            .window = shape.window,
            .soft_cap = static_cast<double>(shape.soft_cap),
            .position_bias = position_bias<double>(bias.exact)};
  }
  template <class T>
  PositionBias<T> position_bias(const Tensor<T>& values) const {
    if (!shape.biased) return {};
    return {values, shape.first_distance()};
  }

  // Of a weight: roundings of a score of magnitude √D, and the exponential's 1.9e-7.
  double tolerance() const {
    return unit_roundoff * (8.0 + 4.0 * std::sqrt(static_cast<double>(shape.head_size)));
  }

  cases::Attention shape;
  Twin query, key, value, bias, log_sum_exp;
  Tensor<std::int32_t> tokens;
};

template <class T>
struct Rows {
  Tensor<T> entropy, distance, first, self, previous, duplicate, induction, largest;

  explicit Rows(const Shape& shape) {
    for (Tensor<T>* tensor : all()) *tensor = Tensor<T>(shape), tensor->fill(T(NAN));
  }
  std::vector<Tensor<T>*> all() {
    return {&entropy, &distance, &first, &self, &previous, &duplicate, &induction, &largest};
  }
  AttentionRowStatistics<T> views() {
    return {entropy, distance, first, self, previous, duplicate, induction, largest};
  }
};

TEST(AttentionRowStatistics, MatchTheReference) {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::checked(shape.use) || shape.queries > shape.memory || shape.query_offset > 0)
      continue;
    SCOPED_TRACE(shape.name());
    SummaryProblem problem(shape);
    for (const auto& tokens : std::vector<View<const std::int32_t>>{problem.tokens.view(), {}}) {
      Rows<double> expected(problem.log_sum_exp.exact.shape());
      reference::attention_row_statistics<double>(problem.exact_input(), problem.log_sum_exp.exact,
                                                  tokens, expected.views());
      on_every_instruction_set([&] {
        Rows<float> rows(problem.log_sum_exp.single.shape());
        attention_row_statistics(problem.input(), problem.log_sum_exp.single, tokens, rows.views());
        const auto actual = rows.all();
        const auto exact = expected.all();
        for (std::size_t which = 0; which < exact.size(); ++which) {
          // Sums of weights, which together are one, times at most: a power of ln S for the
          // entropy, S for the distance, one elsewhere.
          const auto memory = static_cast<double>(shape.memory);
          const double factor = which == 0 ? 4.0 + std::log(memory) : which == 1 ? memory : 1.0;
          for (std::int64_t i = 0; i < exact[which]->size(); ++i) {
            ASSERT_NEAR((*actual[which])[i], (*exact[which])[i], factor * problem.tolerance())
                << "statistic " << which << ", row " << i;
          }
        }
      });
    }
  }
}

TEST(AttentionRowStatistics, AreThoseOfPureHabits) {
  // Keys are axes and queries 50 times as long: every row looks at one position alone.
  const std::int64_t positions = 100, size = 100;
  const auto looking_at = [&](auto&& target) {
    Tensor<float> query(Shape{1, positions, 1, size}), key(Shape{1, positions, 1, size});
    Tensor<std::int32_t> tokens(Shape{1, positions});
    for (std::int64_t t = 0; t < positions; ++t) {
      key.view()(0, t, 0, t) = 1.0F;
      query.view()(0, t, 0, target(t)) = 50.0F;
      tokens[t] = static_cast<std::int32_t>(t % 20);
    }
    const AttentionInput<float> input{query, key, key, Mask::causal, 1.0F};
    Tensor<float> out(query.shape()), log_sum_exp(Shape{1, 1, positions});
    attention_forward(input, out, log_sum_exp);
    Rows<float> rows(log_sum_exp.shape());
    attention_row_statistics(input, log_sum_exp, tokens, rows.views());
    return rows;
  };
  on_every_instruction_set([&] {
    const auto previous = looking_at([](auto t) { return std::max<std::int64_t>(t - 1, 0); });
    const auto duplicate = looking_at([](auto t) { return t < 20 ? 0 : t - 20; });
    const auto induction = looking_at([](auto t) { return t < 20 ? 0 : t - 19; });
    for (std::int64_t t = 45; t < positions; ++t) {
      EXPECT_NEAR(previous.previous[t], 1.0F, 1e-6);
      EXPECT_NEAR(previous.distance[t], 1.0F, 1e-5);
      EXPECT_NEAR(previous.entropy[t], 0.0F, 1e-5);
      EXPECT_NEAR(duplicate.duplicate[t], 1.0F, 1e-6);
      EXPECT_NEAR(duplicate.induction[t], 0.0F, 1e-6);
      EXPECT_NEAR(duplicate.largest[t], 1.0F, 1e-6);
      EXPECT_NEAR(duplicate.distance[t], 20.0F, 1e-4);
      EXPECT_NEAR(induction.induction[t], 1.0F, 1e-6);
      EXPECT_NEAR(induction.duplicate[t], 0.0F, 1e-6);
    }
  });
}

// Of a full mask, what is behind a query counts as well as what is before it.
TEST(AttentionRowStatistics, OfAFullMaskAlsoLookBehind) {
  const std::int64_t positions = 100, size = 100;
  Tensor<float> query(Shape{1, positions, 1, size}), key(Shape{1, positions, 1, size});
  Tensor<std::int32_t> tokens(Shape{1, positions});
  const auto target = [](std::int64_t t) { return t + (t % 2 == 0 ? 20 : 21); };
  for (std::int64_t t = 0; t < positions; ++t) {
    key.view()(0, t, 0, t) = 1.0F;
    if (target(t) < positions) query.view()(0, t, 0, target(t)) = 50.0F;
    tokens[t] = static_cast<std::int32_t>(t % 20);
  }
  const AttentionInput<float> input{query, key, key, Mask::full, 1.0F};
  on_every_instruction_set([&] {
    Tensor<float> out(query.shape()), log_sum_exp(Shape{1, 1, positions});
    attention_forward(input, out, log_sum_exp);
    Rows<float> rows(log_sum_exp.shape());
    attention_row_statistics(input, log_sum_exp, tokens, rows.views());
    for (std::int64_t t = 0; t + 21 < positions; ++t) {
      EXPECT_NEAR(rows.duplicate[t], t % 2 == 0 ? 1.0F : 0.0F, 1e-6) << t;
      EXPECT_NEAR(rows.induction[t], t % 2 == 0 ? 0.0F : 1.0F, 1e-6) << t;
      EXPECT_NEAR(rows.largest[t], 1.0F, 1e-6) << t;
      EXPECT_NEAR(rows.distance[t], t % 2 == 0 ? -20.0F : -21.0F, 1e-4) << t;
    }
  });
}

TEST(AttentionPooledTile, MatchesTheReference) {
  for (const cases::Attention& shape : cases::attention()) {
    if (!cases::checked(shape.use) || shape.operations() > 2e7 || shape.query_offset > 0) continue;
    SCOPED_TRACE(shape.name());
    SummaryProblem problem(shape);
    const AttentionTile tile{.batch = shape.batch - 1,
                             .head = shape.heads - 1,
                             .query_begin = shape.queries / 3,
                             .query_end = shape.queries,
                             .key_begin = shape.memory / 4,
                             .key_end = shape.memory - shape.memory / 5};
    for (const std::int64_t pool : {1, 2, 8, 64}) {
      const Shape cells{(tile.query_end - tile.query_begin + pool - 1) / pool,
                        (tile.key_end - tile.key_begin + pool - 1) / pool};
      Twin sum(cells), largest(cells);
      const auto expect_match = [&](View<const double> exact_lse, View<const float> lse,
                                    double tolerance) {
        reference::attention_pooled_tile<double>(problem.exact_input(), exact_lse, tile, pool,
                                                 {sum.exact, largest.exact});
        on_every_instruction_set([&] {
          sum.single.fill(NAN);
          largest.single.fill(NAN);
          attention_pooled_tile(problem.input(), lse, tile, pool, {sum.single, largest.single});
          for (std::int64_t i = 0; i < cells.size(); ++i) {
            // errors of a cell's elements add up at worst
            const auto elements = static_cast<double>(pool * pool);
            ASSERT_NEAR(sum.single[i], sum.exact[i], elements * tolerance) << "cell " << i;
            if (std::isinf(largest.exact[i])) {
              ASSERT_EQ(largest.single[i], static_cast<float>(largest.exact[i]));
            } else {
              ASSERT_NEAR(largest.single[i], largest.exact[i], tolerance) << "cell " << i;
            }
          }
        });
      };
      expect_match(problem.log_sum_exp.exact.view(), problem.log_sum_exp.single.view(),
                   problem.tolerance());
      // scores are not below one: a few times √D, as their products are
      expect_match({}, {}, 4.0 * problem.tolerance());
    }
  }
}

TEST(AttentionSummaries, WrongOperandsAreNamed) {
  SummaryProblem problem(cases::Attention{1, 6, 6, 2, 8});
  Rows<float> rows(problem.log_sum_exp.single.shape());
  AttentionInput<float> full = problem.input();
  full.mask = Mask::full;
  full.key = full.key.slice(1, 0, 5);
  full.value = full.value.slice(1, 0, 5);
  EXPECT_THROW(attention_row_statistics(full, problem.log_sum_exp.single, {}, rows.views()), Error);
  Tensor<std::int32_t> few(Shape{1, 5});
  EXPECT_THROW(
      attention_row_statistics(problem.input(), problem.log_sum_exp.single, few, rows.views()),
      Error);
  Tensor<float> sum(Shape{2, 2}), largest(Shape{2, 2});
  const AttentionTile tile{0, 0, 0, 6, 0, 6};
  EXPECT_THROW(attention_pooled_tile(problem.input(), {}, tile, 3, {sum, largest}), Error);
  EXPECT_THROW(attention_pooled_tile(problem.input(), {}, tile, 2, {sum, largest}), Error);
  EXPECT_THROW(attention_pooled_tile(problem.input(), {}, {0, 2, 0, 4, 0, 4}, 2, {sum, largest}),
               Error);
}

}  // namespace
}  // namespace heed::kernels
