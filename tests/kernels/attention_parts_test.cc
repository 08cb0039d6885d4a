// Attention to a memory in parts: as attention to all of it.
#include <limits>

#include "base/expect_error.h"
#include "kernels/attention_problem.h"
#include "kernels/dropout_hash.h"

namespace heed::kernels {
namespace {

// The memory from position `begin` to `end`, as a part: queries from a multiple of `step` on,
// `step` of them, each call with what its mask leaves of it.
struct Parts {
  AttentionProblem& problem;
  std::int64_t step;

  std::int64_t count() const { return problem.shape.queries / step; }

  // Queries of stretch i against keys of stretch j; T = S.
  AttentionInput<float> input(std::int64_t i, std::int64_t j) const {
    AttentionInput<float> input = problem.input();
    const auto stretch = [&](View<const float> view, std::int64_t at) {
      return view.slice(1, at * step, (at + 1) * step);
    };
    input.query = stretch(input.query, i);
    input.key = stretch(input.key, j);
    input.value = stretch(input.value, j);
    input.positions = problem.shape.queries;
    if (input.mask == Mask::causal) input.query_offset = (i - j) * step;
    // Rows of dropout's mask are counted from the end of the pass.
    input.dropout = from_row(input.dropout, (i + 1) * step - problem.shape.queries);
    input.dropout.first_column = static_cast<std::uint32_t>(j * step);
    return input;
  }

  bool sees(std::int64_t i, std::int64_t j) const {
    return problem.shape.mask == Mask::full || j <= i;
  }

  void forward() const {
    const AttentionProblem& p = problem;
    const Shape rows{p.shape.batch, step, p.shape.heads, p.shape.head_size};
    const Shape sums{p.shape.batch, p.shape.heads, step};
    for (std::int64_t i = 0; i < count(); ++i) {
      Tensor<float> out(rows), log_sum_exp(sums), part(rows), part_sums(sums);
      log_sum_exp.fill(-std::numeric_limits<float>::infinity());
      for (std::int64_t j = 0; j < count(); ++j) {
        if (!sees(i, j)) continue;
        attention_forward(input(i, j), part, part_sums);
        merge_attention({part, part_sums}, out, log_sum_exp);
      }
      put(out, problem.out.single, i);
      for (std::int64_t row = 0; row < p.shape.batch * p.shape.heads; ++row) {
        std::copy_n(log_sum_exp.data() + row * step, step,
                    problem.log_sum_exp.single.data() + row * p.shape.queries + i * step);
      }
    }
  }

  void backward() const {
    const AttentionProblem& p = problem;
    const Shape rows{p.shape.batch, step, p.shape.heads, p.shape.head_size};
    const Shape memory{p.shape.batch, step, p.shape.key_heads(), p.shape.head_size};
    for (Twin* result : {&problem.d_query, &problem.d_key, &problem.d_value}) {
      result->single.fill(0.0F);
    }
    Tensor<float> sums(Shape{p.shape.batch, p.shape.heads, step});
    Tensor<float> d_query(rows), d_key(memory), d_value(memory);
    for (std::int64_t i = 0; i < count(); ++i) {
      for (std::int64_t row = 0; row < p.shape.batch * p.shape.heads; ++row) {
        std::copy_n(problem.log_sum_exp.single.data() + row * p.shape.queries + i * step, step,
                    sums.data() + row * step);
      }
      const auto stretch = [&](const Tensor<float>& whole) {
        return whole.view().slice(1, i * step, (i + 1) * step);
      };
      for (std::int64_t j = 0; j < count(); ++j) {
        if (!sees(i, j)) continue;
        attention_backward(input(i, j), stretch(problem.out.single), sums,
                           stretch(problem.d_out.single), {d_query, d_key, d_value});
        add(d_query, problem.d_query.single, i);
        add(d_key, problem.d_key.single, j);
        add(d_value, problem.d_value.single, j);
      }
    }
  }

 private:
  template <class Update>
  void each(const Tensor<float>& from, Tensor<float>& whole, std::int64_t i,
            Update&& update) const {
    const std::int64_t row = from.size() / (problem.shape.batch * step);
    for (std::int64_t b = 0; b < problem.shape.batch; ++b) {
      float* const to = whole.data() + (b * problem.shape.queries + i * step) * row;
      for (std::int64_t k = 0; k < step * row; ++k) update(to[k], from[b * step * row + k]);
    }
  }
  void put(const Tensor<float>& from, Tensor<float>& whole, std::int64_t i) const {
    each(from, whole, i, [](float& to, float value) { to = value; });
  }
  void add(const Tensor<float>& from, Tensor<float>& whole, std::int64_t i) const {
    each(from, whole, i, [](float& to, float value) { to += value; });
  }
};

TEST(AttentionParts, AddUpToTheWhole) {
  const std::vector<std::pair<cases::Attention, std::int64_t>> problems{
      {{2, 12, 12, 2, 16, Mask::causal, 0.25F}, 2},
      {{1, 12, 12, 4, 8, Mask::full, 0.1F, cases::Use::check, 2}, 4},
      {{2, 192, 192, 2, 32}, 64},
      {{1, 240, 240, 4, 24, Mask::causal, 0.2F, cases::Use::check, 2}, 40},
      {{1, 192, 192, 2, 40, Mask::full}, 64},
      {{1, 210, 210, 2, 32, Mask::causal, 0.1F, cases::Use::check, 1, 50}, 70},
      {{1, 210, 210, 2, 32, Mask::causal, 0.0F, cases::Use::check, 2, 30, 2.0F}, 35},
      {{1, 1200, 1200, 1, 64, Mask::causal, 0.1F}, 600}};
  for (const auto& [shape, step] : problems) {
    SCOPED_TRACE(shape.name());
    AttentionProblem problem(shape);
    problem.exact_forward();
    problem.exact_backward();
    const Parts parts{problem, step};
    on_every_instruction_set([&] {
      parts.forward();
      parts.backward();
      // each merge rounds a row a few times more
      const double tolerance =
          problem.tolerance() + 4.0 * unit_roundoff * static_cast<double>(parts.count());
      EXPECT_LE(relative_error(problem.out), tolerance);
      EXPECT_LE(relative_error(problem.log_sum_exp), tolerance);
      EXPECT_LE(relative_error(problem.d_query), 4.0 * tolerance);
      EXPECT_LE(relative_error(problem.d_key), 4.0 * tolerance);
      EXPECT_LE(relative_error(problem.d_value), 4.0 * tolerance);
    });
  }
}

// Behind a window, row by row and in blocks: queries from `seeing` on see nothing of the memory.
TEST(AttentionParts, AQueryThatSeesNothingAddsNothing) {
  struct Case {
    std::int64_t size, offset, seeing;
  };
  for (const Case& test : {Case{3, 6, 1}, Case{40, 40, 4}, Case{100, 100, 4}}) {
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      cases::Attention shape{1, test.size, test.size, 2, 24, Mask::causal, 0.1F};
      shape.window = 5;
      shape.query_offset = test.offset;
      SCOPED_TRACE(shape.name());
      AttentionProblem problem(shape);
      problem.precision = precision;
      on_every_instruction_set([&] {
        for (Twin* result : {&problem.out, &problem.d_query}) result->single.fill(NAN);
        problem.forward();
        for (std::int64_t i = 0; i < problem.log_sum_exp.single.size(); ++i) {
          float& sum = problem.log_sum_exp.single[i];
          EXPECT_EQ(std::isinf(sum) && sum < 0, i % test.size >= test.seeing) << i;
          if (std::isinf(sum)) sum = 1.0F;  // of all parts: finite
        }
        problem.backward();
        for (const Twin* result : {&problem.out, &problem.d_query}) {
          for (std::int64_t i = test.seeing * 48; i < test.size * 48; ++i) {
            ASSERT_EQ(result->single[i], 0.0F) << i;
          }
        }
        for (const Twin* result : {&problem.d_query, &problem.d_key, &problem.d_value}) {
          for (const float value : result->single.span()) ASSERT_TRUE(std::isfinite(value));
        }
      });
    }
  }
}

TEST(AttentionParts, MergeAsTheReferenceDoes) {
  const Shape rows{2, 70, 3, 20}, sums{2, 3, 70};
  Twin part = random_twin(rows, 1), part_sums = random_twin(sums, 2, 5.0);
  Twin out = random_twin(rows, 3), log_sum_exp = random_twin(sums, 4, 5.0);
  const auto see_nothing = [](Twin& of, std::int64_t i) {
    of.single[i] = -std::numeric_limits<float>::infinity();
    of.exact[i] = -std::numeric_limits<double>::infinity();
  };
  const std::vector<float> before(out.single.span().begin(), out.single.span().end());
  see_nothing(part_sums, 0);    // query 0 of head 0, to which the part adds nothing
  see_nothing(log_sum_exp, 1);  // query 1, of which the part is all
  merge_attention({part.single, part_sums.single}, out.single, log_sum_exp.single);
  reference::merge_attention<double>({part.exact, part_sums.exact}, out.exact, log_sum_exp.exact);
  EXPECT_LE(relative_error(out), 8.0 * unit_roundoff);
  EXPECT_LE(relative_error(log_sum_exp), 4.0 * unit_roundoff);
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(out.single[i], before[static_cast<std::size_t>(i)]);
    EXPECT_EQ(out.single[60 + i], part.single[60 + i]);
  }
}

TEST(AttentionParts, RefuseWhatMasksCannotMean) {
  AttentionProblem full(cases::Attention{1, 4, 4, 1, 8, Mask::full});
  full.shape.query_offset = 4;
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { full.forward(); }, "4 positions after the memory");
  AttentionProblem before(cases::Attention{1, 4, 4, 1, 8});
  before.shape.query_offset = -1;
  testing::expect_error(
      ErrorCode::invalid_argument, [&] { before.forward(); }, "-1 positions after the memory");
}

}  // namespace
}  // namespace heed::kernels
