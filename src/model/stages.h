// The stages of a block. Whatever runs a model calls these and nothing else: training, prompts,
// ragged batches, cached decoding, variants of a text and patches differ in the rows that they
// pass, not in how a row is computed. Precision, cache type, mask and the order of every sum are
// decided here, by the description and by the length of the pass that a row belongs to, never by
// the rows beside it. Each backward is below its forward.
#pragma once

#include <cstdint>

#include "model/activations.h"
#include "model/attention_site.h"
#include "model/derived_points.h"
#include "model/edited_points.h"
#include "model/parameters.h"
#include "model/pass.h"
#include "model/rotary.h"
#include "model/view_shapes.h"
#include "tensor/tensor.h"

namespace heed {

// What the stages of a layer work with, besides their rows. Borrowed.
struct LayerPass {
  const StackSpecification& stack;
  const BlockParameters& parameters;
  std::int64_t layer;
  const Pass& pass;
  const RotaryRows& rotary;                      // of the rows of the pass
  kernels::PositionBias<float> position_bias{};  // of the distances in the pass

  const AttentionSpecification& attention() const { return stack.block.attention; }
  const AttentionSpecification& cross_attention() const { return *stack.block.cross_attention; }
};

// out (R, O) = x (R, I)·weightᵀ + bias, in the precision of the weights.
void project(const Pass& pass, View<const float> x, const LinearWeights& weights, View<float> out);

// The same for outputs [begin, begin + count) alone: out (R, count).
void project_outputs(const Pass& pass, View<const float> x, const LinearWeights& weights,
                     std::int64_t begin, View<float> out);

// d_x (R, I), overwritten, from d_out (R, O); gradients accumulate.
struct ProjectBackward {
  View<const float> x;
  View<const float> d_out;
  View<float> d_x;
};
void project_backward(const LinearWeights& weights, const LinearWeightGradients& gradients,
                      const ProjectBackward& operands);

// out (R, C) = norm(x) without observation; statistics (R) are filled.
void normalise(const StackSpecification& stack, View<const float> x, const NormWeights& weights,
               const NormSaved& saved, View<float> out);
// d_x (R, C), accumulated.
struct NormBackwardRows {
  View<const float> x;
  View<const float> d_out;
  View<float> d_x;
};
void normalise_backward(const StackSpecification& stack, const FrozenParts& frozen,
                        const NormWeights& weights, const NormSaved& saved,
                        const NormBackwardRows& rows, const NormWeightGradients& gradients);

// What a branch of a layer adds to the stream, in place of what it gives, `rows` (R, C): the norm
// of it, where the description has one. Without observation.
void norm_output(const StackSpecification& stack, const NormWeights& weights, View<float> rows);

// Queries (B, T, H, D), keys and values (B, T, G, D): three views of projected rows.
template <class T>
struct Heads {
  View<T> query;
  View<T> key;
  View<T> value;

  operator Heads<const T>() const requires(!std::is_const_v<T>) { return {query, key, value}; }
};

// A row of `projected` (B·T, A + 2K) holds query | key | value.
template <class T>
Heads<T> split_heads(const AttentionSpecification& attention, std::int64_t batch,
                     View<T> projected) {
  check(projected.extent(1) == attention.projected_width(), "rows of query, key and value");
  const auto part = [&](std::int64_t first, std::int64_t heads) {
    return heads_of_sequences(projected, first, heads, attention.head_size, batch);
  };
  const std::int64_t a = attention.query_width(), k = attention.key_value_width();
  return {part(0, attention.query_heads), part(a, attention.key_value_heads),
          part(a + k, attention.key_value_heads)};
}

// Queries and keys as attention reads them: `saved.positioned` is filled where they change.
void position(const LayerPass& at, const AttentionActivations& saved);
// From the gradients of what attention read to those of the projections, in place in `d_projected`.
void position_backward(const LayerPass& at, const AttentionActivations& saved,
                       const BlockGradients& gradients, View<float> d_projected);

// Queries, keys and values as attention reads them, of `batch` sequences.
Heads<const float> attention_heads(const AttentionSpecification& attention, std::int64_t batch,
                                   const AttentionActivations& saved);

// Attention of these heads, as the description and the pass say: mask, scale, cap, dropout and
// precision. Queries may be the last ones of the pass, from a multiple of `query_alignment` on.
kernels::AttentionInput<float> attention_input(const LayerPass& at, AttentionKind kind,
                                               const Heads<const float>& heads);
inline constexpr std::int64_t query_alignment = 64;

// Appends keys and values of the pass to its caches, if it has any.
void store(const LayerPass& at, const Heads<const float>& heads);

// mixed (B, T, H, D) and log_sum_exp (B, H, T): softmax(query·keyᵀ·scale)·value. Sequences attend
// to the keys and values of `input` or, with caches, to all that these hold; in cross-attention, to
// those of their source, keys and values (1, M, G, D) of `input` or the caches of the memory.
// Where lengths differ, queries and mixed are (1, N, H, D), and a sequence follows the other in
// log_sum_exp.
void attend(const LayerPass& at, AttentionKind kind, const kernels::AttentionInput<float>& input,
            View<float> mixed, View<float> log_sum_exp);
// Gradients have the shapes of their tensors and are overwritten; those of position biases
// accumulate.
void attend_backward(const LayerPass& at, AttentionKind kind,
                     const kernels::AttentionInput<float>& input, View<const float> mixed,
                     View<const float> log_sum_exp, View<const float> d_mixed,
                     const kernels::AttentionGradients<float>& gradients);

// The result (N, A) of attention for backward, which needs what attention gave: mixed_values, or,
// where the pass edits them, what is computed again into `again`.
View<const float> unedited_mixed_values(const LayerPass& at, AttentionKind kind,
                                        const kernels::AttentionInput<float>& input,
                                        View<const float> mixed_values, Tensor<float>& again);

// out (R, C) = down(activation(up(x))), or down(activation(gate(x)) · up(x)), from x (R, C).
void feed_forward(const LayerPass& at, View<const float> x, const FeedForwardActivations& saved,
                  View<float> out);
// d_x (R, C), overwritten, from d_out (R, C). d_neurons and d_linear are overwritten.
struct FeedForwardBackward {
  View<const float> x;
  View<const float> d_out;
  View<float> d_neurons;  // (R, F)
  View<float> d_linear;   // (R, F), of gated layers
  View<float> d_x;
};
void feed_forward_backward(const LayerPass& at, const FeedForwardActivations& saved,
                           const BlockGradients& gradients, const FeedForwardBackward& operands);

// What a branch adds to the stream, (N, C), after dropout, in place.
void drop(const LayerPass& at, DropoutPoint point, View<float> branch);

// A norm of a pass, with its probe points.

// norm.out (N, C) from x (N, C); norm.saved is filled.
void norm_forward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                  const NormPoints& points, View<const float> x, const NormOutput& norm);

// d_x (N, C), accumulated, from norm.d_out (N, C); parameter gradients accumulate.
struct NormBackward {
  View<float> d_x;
  kernels::NormGradients<float> gradients;
};
void norm_backward(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                   const NormPoints& points, const NormOperands& norm,
                   const NormBackward& backward);

}  // namespace heed
