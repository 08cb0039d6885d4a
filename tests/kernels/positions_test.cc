// A row's result depends on the length of its own sequence, and not on the rows beside it.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "base/threads.h"
#include "kernels/kernels.h"
#include "kernels/packed_weight.h"
#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

bool same_bits(const float* a, const float* b, std::int64_t count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

struct Threads {
  explicit Threads(int count) { set_thread_count(count); }
  ~Threads() { set_thread_count(before); }
  int before = thread_count();
};

constexpr std::int64_t row_counts[] = {1, 3, 8, 31, 32, 33, 64, 65, 200};
constexpr std::int64_t all_rows = 200;

// Sizes on both sides of the panels of every kernel, and deeper and wider than a block.
struct Sizes {
  std::int64_t inputs, outputs;
};
constexpr Sizes all_sizes[] = {{1, 1}, {31, 70}, {100, 33}, {1600, 70}, {40, 300}};

// `linear`(x, out, positions) on the first rows of x, and on rows from the middle of it.
template <class Linear>
void expect_rows_alike(const Sizes& sizes, Linear&& linear) {
  const Twin x = random_twin(Shape{all_rows, sizes.inputs}, 1);
  Tensor<float> whole(Shape{all_rows, sizes.outputs}), some(whole.shape());
  for (const std::int64_t positions : {1, 2, 3, 32, 33, 64, 65, 500}) {
    linear(x.single.view(), whole.view(), positions);
    for (const std::int64_t rows : row_counts) {
      for (const std::int64_t first : {std::int64_t{0}, (all_rows - rows) / 2}) {
        const View<float> out = some.view().slice(0, 0, rows);
        linear(x.single.view().slice(0, first, first + rows), out, positions);
        ASSERT_TRUE(same_bits(out.data(), whole.data() + first * sizes.outputs, out.size()))
            << rows << " rows from " << first << " on of " << positions << " positions, "
            << sizes.inputs << " inputs, " << sizes.outputs << " outputs";
      }
    }
  }
}

TEST(LinearPositions, RowsDoNotDependOnThoseBesideThem) {
  for (const int threads : {1, 3}) {
    const Threads setting(threads);
    for (const Sizes& sizes : all_sizes) {
      const Twin weight = random_twin(Shape{sizes.outputs, sizes.inputs}, 2);
      const Twin bias = random_twin(Shape{sizes.outputs}, 3);
      on_every_instruction_set([&] {
        const PackedWeight packed(weight.single);
        for (const PackedWeight* pack : {static_cast<const PackedWeight*>(nullptr), &packed}) {
          for (const Precision precision : {Precision::f32, Precision::bf16}) {
            const LinearParameters<float> parameters{.weight = weight.single,
                                                     .bias = bias.single,
                                                     .precision = precision,
                                                     .packed = pack};
            expect_rows_alike(sizes, [&](View<const float> x, View<float> out, auto positions) {
              linear_forward(x, parameters, out, positions);
            });
          }
        }
      });
    }
  }
}

TEST(LinearPositions, RowsOfPreparedWeightsDoNotDependOnThoseBesideThem) {
  for (const int threads : {1, 3}) {
    const Threads setting(threads);
    for (const Sizes& sizes : all_sizes) {
      const Twin weight = random_twin(Shape{sizes.outputs, sizes.inputs}, 2);
      const Twin bias = random_twin(Shape{sizes.outputs}, 3);
      for (const WeightFormat format :
           {WeightFormat::bf16, WeightFormat::int8, WeightFormat::int4}) {
        SCOPED_TRACE(weight_format_name(format));
        const PreparedWeight prepared(weight.single, format);
        on_every_instruction_set([&] {
          expect_rows_alike(sizes, [&](View<const float> x, View<float> out, auto positions) {
            prepared_linear_forward(x, prepared, bias.single, out, positions);
          });
        });
      }
    }
  }
}

TEST(LinearPositions, WithoutThemTheRowsCount) {
  const Twin x = random_twin(Shape{70, 100}, 1), weight = random_twin(Shape{33, 100}, 2);
  Tensor<float> out(Shape{70, 33}), expected(out.shape());
  const PreparedWeight prepared(weight.single, WeightFormat::int8);
  for (const PreparedWeight* format : {static_cast<const PreparedWeight*>(nullptr), &prepared}) {
    const LinearParameters<float> parameters{.weight = weight.single, .prepared = format};
    linear_forward(x.single, parameters, out);
    linear_forward(x.single, parameters, expected, 70);
    EXPECT_TRUE(same_bits(out.data(), expected.data(), out.size()));
    // Dot products sum in another order than f32 products of many rows, but integers as of many.
    linear_forward(x.single, parameters, out, 4);
    const bool integers = format != nullptr && multiplies_long_rows_in_integers(WeightFormat::int8);
    EXPECT_EQ(same_bits(out.data(), expected.data(), out.size()), integers);
  }
  EXPECT_THROW(linear_forward(x.single, {weight.single}, out, -2), Error);
}

struct Pass {
  std::int64_t positions, memory, heads, key_heads, head_size;
  Mask mask = Mask::causal;
  std::int64_t window = 0;
  float soft_cap = 0.0F;
  float dropout = 0.0F;
};

const Pass passes[] = {
    {1, 9, 2, 1, 16},
    {3, 700, 2, 2, 20},
    {65, 65, 2, 2, 32},
    {66, 80, 4, 2, 24, Mask::causal, 0, 0.0F, 0.1F},
    {130, 200, 4, 1, 40, Mask::causal, 50},
    {200, 330, 2, 2, 33, Mask::full},
    {300, 300, 2, 2, 64, Mask::causal, 0, 2.0F},
    {580, 580, 2, 1, 32, Mask::causal, 100, 3.0F},
    {600, 700, 3, 3, 64, Mask::causal, 0, 0.0F, 0.2F},
};

// Rows of the last queries, from each multiple of 64 on, beside those of the whole pass.
template <class Attend>
void expect_last_queries_alike(const Pass& pass, Attend&& attend) {
  const Shape whole{1, pass.positions, pass.heads, pass.head_size};
  Tensor<float> out(whole), log_sum_exp(Shape{1, pass.heads, pass.positions});
  attend(0, out.view(), log_sum_exp.view(), 0);
  for (std::int64_t first = 0; first < pass.positions; first += 64) {
    const std::int64_t queries = pass.positions - first;
    Tensor<float> last(Shape{1, queries, pass.heads, pass.head_size});
    Tensor<float> sums(Shape{1, pass.heads, queries});
    attend(first, last.view(), sums.view(), pass.positions);
    const std::int64_t row = pass.heads * pass.head_size;
    ASSERT_TRUE(same_bits(last.data(), out.data() + first * row, queries * row)) << first;
    for (std::int64_t h = 0; h < pass.heads; ++h) {
      ASSERT_TRUE(same_bits(sums.data() + h * queries,
                            log_sum_exp.data() + h * pass.positions + first, queries))
          << "head " << h << " from " << first;
    }
  }
}

TEST(AttentionPositions, TheLastQueriesOfAPassHaveTheirBits) {
  for (const int threads : {1, 3}) {
    const Threads setting(threads);
    for (const Pass& pass : passes) {
      SCOPED_TRACE(fmt::format("{} positions, memory {}", pass.positions, pass.memory));
      const Twin query = random_twin({1, pass.positions, pass.heads, pass.head_size}, 1);
      const Twin key = random_twin({1, pass.memory, pass.key_heads, pass.head_size}, 2);
      const Twin value = random_twin(key.single.shape(), 3);
      on_every_instruction_set([&] {
        for (const Precision precision : {Precision::f32, Precision::bf16}) {
          expect_last_queries_alike(pass, [&](std::int64_t first, View<float> out,
                                              View<float> log_sum_exp, std::int64_t positions) {
            attention_forward({.query = query.single.view().slice(1, first, pass.positions),
                               .key = key.single,
                               .value = value.single,
                               .mask = pass.mask,
                               .scale = 0.2F,
                               .dropout = {.rate = pass.dropout, .key = 5},
                               .precision = precision,
                               .window = pass.window,
                               .soft_cap = pass.soft_cap,
                               .positions = positions},
                              out, log_sum_exp);
          });
        }
      });
    }
  }
}

TEST(AttentionPositions, TheSameHoldsForAQuantisedCache) {
  for (const int threads : {1, 3}) {
    const Threads setting(threads);
    for (const Pass& pass : passes) {
      SCOPED_TRACE(fmt::format("{} positions, memory {}", pass.positions, pass.memory));
      const Twin query = random_twin({1, pass.positions, pass.heads, pass.head_size}, 1);
      const Shape memory{1, pass.memory, pass.key_heads, pass.head_size};
      const Twin key = random_twin(memory, 2), value = random_twin(memory, 3);
      for (const CacheType type : {CacheType::bf16, CacheType::int8}) {
        Tensor<std::byte> keys({1, memory[1], memory[2], cache_row_bytes(type, memory[3])});
        Tensor<std::byte> values(keys.shape());
        Tensor<float> key_scales({1, memory[1], memory[2]}), value_scales(key_scales.shape());
        quantise_rows(key.single, {type, keys, key_scales});
        quantise_rows(value.single, {type, values, value_scales});
        on_every_instruction_set([&] {
          expect_last_queries_alike(pass, [&](std::int64_t first, View<float> out,
                                              View<float> log_sum_exp, std::int64_t positions) {
            attention_forward({.query = query.single.view().slice(1, first, pass.positions),
                               .key = {type, keys, key_scales},
                               .value = {type, values, value_scales},
                               .mask = pass.mask,
                               .scale = 0.2F,
                               .window = pass.window,
                               .soft_cap = pass.soft_cap,
                               .positions = positions},
                              out, log_sum_exp);
          });
        });
      }
    }
  }
}

// The number of queries computed together would otherwise select decoding's arithmetic.
TEST(AttentionPositions, SelectTheArithmetic) {
  const Twin query = random_twin({1, 1, 1, 64}, 1), key = random_twin({1, 700, 1, 64}, 2);
  Tensor<float> alone({1, 1, 1, 64}), last(alone.shape()), log_sum_exp({1, 1, 1});
  AttentionInput<float> input{.query = query.single,
                              .key = key.single,
                              .value = key.single,
                              .scale = 0.2F,
                              .precision = Precision::bf16};
  attention_forward(input, alone, log_sum_exp);
  input.positions = 4;
  attention_forward(input, last, log_sum_exp);
  EXPECT_GT(relative_error(last, alone), 1e-4);  // operands were rounded
}

}  // namespace
}  // namespace heed::kernels
