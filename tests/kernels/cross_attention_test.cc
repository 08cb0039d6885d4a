// Queries of one sequence and keys of another: memories of one position, and memories that several
// sequences of queries share.
#include "base/expect_error.h"
#include "kernels/attention_problem.h"
#include "kernels/quantised_cache.h"

namespace heed::kernels {
namespace {

// There is nothing to choose from: the pattern is 1, out is the value, and no score has a gradient.
TEST(CrossAttention, AMemoryOfOnePositionIsCopied) {
  for (const std::int64_t queries : {1, 3, 4, 13, 64, 130, 600}) {
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      AttentionProblem problem(cases::Attention{2, queries, 1, 4, 24, Mask::full});
      problem.shape.group = 1;
      if (precision == Precision::bf16) problem.use_bf16();
      SCOPED_TRACE(problem.shape.name());
      // weights in bf16 are rounded, their sum is not
      const double weight_rounding = precision == Precision::bf16 ? 1.0 / 256 : 0.0;
      on_every_instruction_set([&] {
        problem.forward();
        problem.backward();
        for (std::int64_t b = 0; b < 2; ++b) {
          for (std::int64_t t = 0; t < queries; ++t) {
            for (std::int64_t i = 0; i < 4 * 24; ++i) {
              const float out = problem.out.single[(b * queries + t) * 96 + i];
              const float value = problem.value.single[b * 96 + i];
              ASSERT_NEAR(out, value, std::abs(value) * (weight_rounding + 4 * unit_roundoff))
                  << t << ", " << i;
            }
          }
        }
        // what cancels are products of 24 terms of about 1, in bf16 of a rounded pattern
        const double rounding = precision == Precision::bf16 ? weight_rounding : unit_roundoff;
        const auto terms = static_cast<double>(problem.d_query.single.size());
        EXPECT_LE(relative_error(problem.d_query), 24.0 * rounding * std::sqrt(terms));
        for (std::int64_t b = 0; b < 2; ++b) {
          for (std::int64_t i = 0; i < 96; ++i) {
            double sum = 0.0, size = 0.0;
            for (std::int64_t t = 0; t < queries; ++t) {
              const double term = problem.d_out.single[(b * queries + t) * 96 + i];
              sum += term;
              size += std::abs(term);
            }
            ASSERT_NEAR(problem.d_value.single[b * 96 + i], sum, size * 8.0 * unit_roundoff);
          }
        }
      });
    }
  }
}

// The first sequence's rows for every sequence of the batch, by a stride of 0.
template <class T>
View<T> shared_by(std::int64_t batch, const View<T>& rows) {
  if (rows.rank() == 3) {
    return {
        rows.data(), {batch, rows.extent(1), rows.extent(2)}, {0, rows.stride(1), rows.stride(2)}};
  }
  return {rows.data(),
          {batch, rows.extent(1), rows.extent(2), rows.extent(3)},
          {0, rows.stride(1), rows.stride(2), rows.stride(3)}};
}

// Beams read the keys and values of their source in place.
TEST(CrossAttention, SequencesMayShareOneMemory) {
  constexpr std::int64_t batch = 5;
  for (const std::int64_t queries : {1, 2, 9, 70}) {
    cases::Attention shape{batch, queries, 23, 4, 32, Mask::full};
    shape.group = 2;
    SCOPED_TRACE(shape.name());
    AttentionProblem copies(shape), shared(shape);
    const std::int64_t plane = copies.key.single.size() / batch;
    for (Twin* rows : {&copies.key, &copies.value}) {
      for (std::int64_t i = plane; i < rows->single.size(); ++i) {
        rows->single[i] = rows->single[i - plane];
      }
    }
    on_every_instruction_set([&] {
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        copies.precision = shared.precision = precision;
        copies.forward();
        copies.backward();
        AttentionInput<float> input = shared.input();
        input.key = shared_by(batch, input.key);
        input.value = shared_by(batch, input.value);
        attention_forward(input, shared.out.single, shared.log_sum_exp.single);
        EXPECT_EQ(relative_error(shared.out.single, copies.out.single), 0.0);
        EXPECT_EQ(relative_error(shared.log_sum_exp.single, copies.log_sum_exp.single), 0.0);
        attention_backward(input, shared.out.single, shared.log_sum_exp.single, shared.d_out.single,
                           {shared.d_query.single, shared.d_key.single, shared.d_value.single});
        EXPECT_EQ(relative_error(shared.d_query.single, copies.d_query.single), 0.0);
        EXPECT_EQ(relative_error(shared.d_key.single, copies.d_key.single), 0.0);
      }
      for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
        const Shape one{batch, 23, 2, cache_row_bytes(type, 32)};
        Tensor<std::byte> key(one), value(one);
        Tensor<float> key_scales({batch, 23, 2}), value_scales({batch, 23, 2});
        quantise_rows(copies.key.single, {type, key, key_scales});
        quantise_rows(copies.value.single, {type, value, value_scales});
        QuantisedCacheAttention input{.query = copies.query.single,
                                      .key = {type, key, key_scales},
                                      .value = {type, value, value_scales},
                                      .mask = Mask::full,
                                      .scale = shape.scale()};
        attention_forward(input, copies.out.single, copies.log_sum_exp.single);
        input.key = {type, shared_by<const std::byte>(batch, key),
                     shared_by<const float>(batch, key_scales)};
        input.value = {type, shared_by<const std::byte>(batch, value),
                       shared_by<const float>(batch, value_scales)};
        attention_forward(input, shared.out.single, shared.log_sum_exp.single);
        EXPECT_EQ(relative_error(shared.out.single, copies.out.single), 0.0);
      }
    });
  }
}

// Gradients of sequences are results of their own: they cannot share memory.
TEST(CrossAttention, GradientsAreNotShared) {
  AttentionProblem problem(cases::Attention{2, 5, 6, 2, 8, Mask::full});
  problem.forward();
  testing::expect_error(
      ErrorCode::invalid_argument,
      [&] {
        attention_backward(problem.input(), problem.out.single, problem.log_sum_exp.single,
                           problem.d_out.single,
                           {problem.d_query.single, shared_by(2, problem.d_key.single.view()),
                            problem.d_value.single});
      },
      "gradient of key");
}

}  // namespace
}  // namespace heed::kernels
