// Attention of many sequences in one call: each has the bits of a call of its own.
#include "kernels/attention_sequences.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/elements.h"
#include "kernels/support.h"

namespace heed::kernels {
namespace {

constexpr std::int64_t heads = 4, key_heads = 2, head_size = 24;

Tensor<float> random_tensor(const Shape& shape, std::uint64_t stream) {
  return random_twin(shape, stream).single;
}

// A sequence of `queries` that sees `keys`, the last ones at its queries.
struct Problem {
  Tensor<float> query, key, value, d_out, out, log_sum_exp, d_query, d_key, d_value;

  Problem(std::int64_t queries, std::int64_t keys, std::uint64_t seed)
      : query(random_tensor(Shape{1, queries, heads, head_size}, seed)),
        key(random_tensor(Shape{1, keys, key_heads, head_size}, seed + 1)),
        value(random_tensor(Shape{1, keys, key_heads, head_size}, seed + 2)),
        d_out(random_tensor(query.shape(), seed + 3)),
        out(query.shape()),
        log_sum_exp(Shape{1, heads, queries}),
        d_query(query.shape()),
        d_key(key.shape()),
        d_value(value.shape()) {}

  AttentionInput<float> input() const {
    return {
        .query = query, .key = key, .value = value, .scale = 0.2F, .positions = query.shape()[1]};
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  std::uint64_t seed = 1;
  for (const auto& [queries, keys] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 90}, {70, 70}, {3, 40}, {130, 130}}) {
    all.emplace_back(queries, keys, seed);
    seed += 10;
  }
  return all;
}

void expect_same(const Tensor<float>& a, const Tensor<float>& b) {
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.span().size_bytes()), 0);
}

TEST(AttentionOfSequences, IsThatOfEachAloneToTheBit) {
  on_every_instruction_set([] {
    std::vector<Problem> together = problems(), alone = problems();
    std::vector<SequenceAttention> forward;
    std::vector<SequenceAttentionBackward> backward;
    for (Problem& each : together) {
      forward.push_back({.input = each.input(), .out = each.out, .log_sum_exp = each.log_sum_exp});
      backward.push_back(
          {.input = each.input(),
           .out = each.out,
           .log_sum_exp = each.log_sum_exp,
           .d_out = each.d_out,
           .gradients = {.query = each.d_query, .key = each.d_key, .value = each.d_value}});
    }
    attention_forward(forward);
    attention_backward(backward);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      Problem& each = alone[i];
      attention_forward(each.input(), each.out, each.log_sum_exp);
      attention_backward(each.input(), each.out, each.log_sum_exp, each.d_out,
                         {.query = each.d_query, .key = each.d_key, .value = each.d_value});
      expect_same(together[i].out, each.out);
      expect_same(together[i].log_sum_exp, each.log_sum_exp);
      expect_same(together[i].d_query, each.d_query);
      expect_same(together[i].d_key, each.d_key);
      expect_same(together[i].d_value, each.d_value);
    }
  });
}

// All sequences add to one table: the sum has the order of the sequences.
TEST(AttentionOfSequences, AddTheirGradientsToOneTableOfDistances) {
  std::vector<Problem> together = problems(), alone = problems();
  const std::int64_t distances = 2 * 130 - 1;
  const Tensor<float> values = random_tensor(Shape{heads, distances}, 77);
  const PositionBias<float> bias{.values = values, .first = 1 - 130};
  Tensor<float> d_together(values.shape()), d_alone(values.shape());
  std::vector<SequenceAttentionBackward> backward;
  const auto with_bias = [&](const Problem& of) {
    AttentionInput<float> input = of.input();
    input.position_bias = bias;
    return input;
  };
  for (Problem& each : together) {
    attention_forward(with_bias(each), each.out, each.log_sum_exp);
    backward.push_back({.input = with_bias(each),
                        .out = each.out,
                        .log_sum_exp = each.log_sum_exp,
                        .d_out = each.d_out,
                        .gradients = {.query = each.d_query,
                                      .key = each.d_key,
                                      .value = each.d_value,
                                      .position_bias = d_together}});
  }
  attention_backward(backward);
  for (Problem& each : alone) {
    attention_forward(with_bias(each), each.out, each.log_sum_exp);
    attention_backward(with_bias(each), each.out, each.log_sum_exp, each.d_out,
                       {.query = each.d_query,
                        .key = each.d_key,
                        .value = each.d_value,
                        .position_bias = d_alone});
  }
  expect_same(d_together, d_alone);
}

}  // namespace
}  // namespace heed::kernels
