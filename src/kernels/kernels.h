// The kernels of a transformer: every operation that a model uses, each forward with its backward
// below it. kernels/cpu has the fast implementations; kernels/reference has plain ones, in any
// precision, as executable specification.
//
// Conventions. Gradients of parameters accumulate. Gradients of activations overwrite, save those
// of the residual stream, which accumulate because several branches read it; each function
// documents which. Views are contiguous unless a comment says otherwise, and shapes that do not fit
// throw Error{invalid_argument}. Results depend on operands and thread count, never on timing.
#pragma once

#include <span>

#include "kernels/operands.h"

namespace heed::kernels {

// out (B, T, C) = token_table[tokens] + position_table[first_position + t].
// Throws Error{invalid_argument} for a token outside the table.
void embedding_forward(const EmbeddingInput<float>& input, View<float> out);
void embedding_backward(const EmbeddingInput<float>& input, View<const float> d_out,
                        const EmbeddingGradients<float>& gradients);

// out (N, C) = (x - mean) · reciprocal_deviation · gain + bias, row by row of x (N, C).
// Backward accumulates into d_x: a norm reads the residual stream.
void layer_norm_forward(View<const float> x, const NormParameters<float>& parameters,
                        View<float> out, const NormStatistics<float>& statistics);
void layer_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                         const NormStatistics<float>& statistics, View<const float> d_out,
                         View<float> d_x, const NormGradients<float>& gradients);

// out (N, O) = x (N, I)·weightᵀ + bias. d_x overwrites. With Precision::bf16 both operands of the
// product are rounded first.
void linear_forward(View<const float> x, const LinearParameters<float>& parameters,
                    View<float> out);
void linear_backward_input(View<const float> weight, View<const float> d_out, View<float> d_x,
                           Precision precision = Precision::f32);
void linear_backward_parameters(View<const float> x, View<const float> d_out,
                                const LinearGradients<float>& gradients,
                                Precision precision = Precision::f32);

// out = activation(x), element by element, any shape. d_x overwrites; it may be d_out itself.
void activation_forward(View<const float> x, Activation activation, View<float> out);
void activation_backward(View<const float> x, Activation activation, View<const float> d_out,
                         View<float> d_x);

// out (B, T, H, D) and, for backward and for probes, the natural logarithm of each row's softmax
// denominator, log_sum_exp (B, H, T). Streams over tiles of the memory with a running
// maximum and sum (Milakov, Gimelshein 2018; Dao et al. 2022): no (T, S) buffer exists. Backward
// recomputes each tile of the pattern as exp(scores - log_sum_exp).
void attention_forward(const AttentionInput<float>& input, View<float> out,
                       View<float> log_sum_exp);
void attention_backward(const AttentionInput<float>& input, View<const float> out,
                        View<const float> log_sum_exp, View<const float> d_out,
                        const AttentionGradients<float>& gradients);

// Any rectangle of one head's scores (scaled; −∞ where masked) or pattern, exactly as in forward
// (before dropout): out (query_end - query_begin, key_end - key_begin).
void attention_scores_tile(const AttentionInput<float>& input, const AttentionTile& tile,
                           View<float> out);
void attention_pattern_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                            const AttentionTile& tile, View<float> out);

// out = dropout(x) for x (N, C); the same call on gradients is its backward. out may be x.
void dropout(View<const float> x, const Dropout& dropout, View<float> out);

// out = x + y, any shape; out may be x or y.
void add(View<const float> x, View<const float> y, View<float> out);

// losses (N) = log Σ exp(logits) - logits[target], natural logarithm, for logits (N, V) and targets
// (N). Throws Error{invalid_argument} for a target that is neither in [0, V) nor ignored_target.
void cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                           View<float> losses);
// The same losses, and logits overwritten by scale · ∂loss/∂logits = scale · (softmax - one-hot).
void cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                    float scale, View<float> losses);

// One AdamW update of a range of parameters and its moments.
void adamw_step(const AdamWState<float>& state, const AdamWStep<float>& step);

// Σ x², in double.
double squared_norm(std::span<const float> x);

// Whether every element is finite.
bool all_finite(std::span<const float> x);

}  // namespace heed::kernels
