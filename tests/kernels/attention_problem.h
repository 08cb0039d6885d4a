// A case of attention with its operands and results, in float and in double.
#pragma once

#include "base/bf16.h"
#include "kernels/cases.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"
#include "kernels/support.h"

namespace heed::kernels {

// All operands and results of one case. Heads are read where a joint projection would have written
// them, (B, T, 3, H, D) with T = S, or else from tensors of their own.
struct AttentionProblem {
  explicit AttentionProblem(const cases::Attention& wanted) : shape(wanted) {
    const Shape query_shape{shape.batch, shape.queries, shape.heads, shape.head_size};
    const Shape memory_shape{shape.batch, shape.memory, shape.key_heads(), shape.head_size};
    query = random_twin(query_shape, 1);
    key = random_twin(memory_shape, 2);
    value = random_twin(memory_shape, 3);
    d_out = random_twin(query_shape, 4);
    out = Twin(query_shape);
    log_sum_exp = Twin(Shape{shape.batch, shape.heads, shape.queries});
    d_query = Twin(query_shape);
    d_key = Twin(memory_shape);
    d_value = Twin(memory_shape);
    if (!shape.biased) return;
    bias = random_twin(Shape{shape.heads, shape.distances()}, 5);
    d_bias = Twin(bias.single.shape());
  }

  Dropout dropout() const { return {.rate = shape.dropout, .key = 99}; }
  AttentionInput<float> input() const {
    return {query.single,
            key.single,
            value.single,
            shape.mask,
            shape.scale(),
            dropout(),
            precision,
            shape.window,
            shape.soft_cap,
            positions,
            position_bias<float>(bias.single),
            shape.query_offset};
  }
  AttentionInput<double> exact_input() const {
    return {query.exact,
            key.exact,
            value.exact,
            shape.mask,
            static_cast<double>(shape.scale()),
            dropout(),
            Precision::f32,
            shape.window,
            static_cast<double>(shape.soft_cap),
            positions,
            position_bias<double>(bias.exact),
            shape.query_offset};
  }
  template <class T>
  PositionBias<T> position_bias(const Tensor<T>& values) const {
    if (!shape.biased) return {};
    return {values, shape.first_distance()};
  }
  void forward() { attention_forward(input(), out.single, log_sum_exp.single); }
  // Overwrites d_bias, to which the kernel adds.
  void backward() {
    AttentionGradients<float> gradients{d_query.single, d_key.single, d_value.single};
    if (shape.biased) {
      d_bias.single.fill(0.0F);
      gradients.position_bias = d_bias.single;
    }
    attention_backward(input(), out.single, log_sum_exp.single, d_out.single, gradients);
  }
  void exact_forward() {
    reference::attention_forward<double>(exact_input(), out.exact, log_sum_exp.exact);
  }
  void exact_backward() {
    AttentionGradients<double> gradients{d_query.exact, d_key.exact, d_value.exact};
    if (shape.biased) {
      d_bias.exact.fill(0.0);
      gradients.position_bias = d_bias.exact;
    }
    reference::attention_backward<double>(exact_input(), out.exact, log_sum_exp.exact, d_out.exact,
                                          gradients);
  }

  // Attention in bf16, of operands that bf16 can hold: what is left to compare is the rest of it.
  void use_bf16() {
    precision = Precision::bf16;
    for (Twin* operand : {&query, &key, &value, &d_out}) {
      for (std::int64_t i = 0; i < operand->single.size(); ++i) {
        operand->single[i] = bf16_to_f32(f32_to_bf16(operand->single[i]));
        operand->exact[i] = static_cast<double>(operand->single[i]);
      }
    }
  }

  // A score of magnitude M = scale·‖query‖·‖key‖ ≈ √D carries a few roundings of M, each of which
  // changes a weight by the same relative amount; the weights' exponential adds 1.9e-7 (three
  // roundings); sums over S weights add about √S/4 roundings, being blocked.
  double tolerance() const {
    const auto size = static_cast<double>(shape.head_size),
               memory = static_cast<double>(shape.memory);
    return unit_roundoff * (8.0 + 2.0 * std::sqrt(size) + std::sqrt(memory) / 4.0);
  }

  // A window or a memory of one position leaves one weight, 1, and scores without a gradient. The
  // error of that zero is not relative to it but to the terms that cancel: each of about 1, in
  // every element.
  double scores_size() const {
    return shape.window == 1 || shape.memory == 1
               ? std::sqrt(static_cast<double>(d_query.single.size()))
               : 1.0;
  }

  // In bf16 the sums of weights may add an exponential good to 3e-6.
  double softmax_tolerance() const {
    return tolerance() + (precision == Precision::bf16 ? 6e-6 : 0.0);
  }

  cases::Attention shape;
  Precision precision = Precision::f32;
  std::int64_t positions = 0;
  Twin query, key, value, d_out, out, log_sum_exp, d_query, d_key, d_value;
  Twin bias, d_bias;  // (H, distances), if the case has them
};

}  // namespace heed::kernels
