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

// out (B, T, C) = token_scale · token_table[tokens] + position_table[first_position + t].
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

// Root mean square normalisation (Zhang, Sennrich 2019) over the last dimension C:
//   out = x · r · gain, r = 1/√(mean(x²) + epsilon), kept as reciprocal_deviation
// of rows x, out (N, C), contiguous, with reciprocal_deviation (N); or of each head of x, out
// (N, H, C), of any strides with a dense last dimension, with reciprocal_deviation (N, H). The
// parameters have no bias. Backward sums the gradient of gain over all rows and heads. d_x
// accumulates for (N, C), as in layer_norm_backward; for (N, H, C) it overwrites, and may be d_out.
void rms_norm_forward(View<const float> x, const NormParameters<float>& parameters, View<float> out,
                      View<float> reciprocal_deviation);
void rms_norm_backward(View<const float> x, const NormParameters<float>& parameters,
                       View<const float> reciprocal_deviation, View<const float> d_out,
                       View<float> d_x, const NormGradients<float>& gradients);

// Rotates pairs of the first R <= D channels of every head of x (N, H, D), in place, by the angles
// of its row (Su et al. 2021, eq. 34); R is even. x may have any strides with a dense last
// dimension. Backward rotates d_x, the gradient of the result, by the opposite angles.
void rotary_forward(View<float> x, const RotaryTable<float>& table);
void rotary_backward(View<float> d_x, const RotaryTable<float>& table);

// out (N, O) = x (N, I)·weightᵀ + bias, within the soft cap where there is one. d_x overwrites, and
// backward is of the product alone (soft_cap_backward comes before it). With Precision::bf16 both
// operands of the product are rounded first. `positions` (0: N; or decoding_step) is the length of
// the sequence that these rows are part of. It alone chooses between dot products, for few rows,
// and a matrix product: a row has the same bits beside any other rows.
void linear_forward(View<const float> x, const LinearParameters<float>& parameters, View<float> out,
                    std::int64_t positions = 0);
void linear_backward_input(View<const float> weight, View<const float> d_out, View<float> d_x,
                           Precision precision = Precision::f32);
void linear_backward_parameters(View<const float> x, View<const float> d_out,
                                const LinearGradients<float>& gradients,
                                Precision precision = Precision::f32);

// out = activation(x), element by element, any shape. d_x overwrites; it may be d_out itself.
void activation_forward(View<const float> x, Activation activation, View<float> out);
void activation_backward(View<const float> x, Activation activation, View<const float> d_out,
                         View<float> d_x);

// out = cap·tanh(x/cap), element by element, any shape: numbers within ±cap. out may be x. Backward
// is from what forward gave: d_x = d_out·(1 − (out/cap)²), which may be d_out.
void soft_cap_forward(View<const float> x, float cap, View<float> out);
void soft_cap_backward(View<const float> out, float cap, View<const float> d_out, View<float> d_x);

// out = activation(gate) · up, element by element (Shazeer 2020), any shape. Backward overwrites
// d_gate and d_up; d_gate may be d_out.
void gated_activation_forward(View<const float> gate, View<const float> up, Activation activation,
                              View<float> out);
void gated_activation_backward(View<const float> gate, View<const float> up, Activation activation,
                               View<const float> d_out, View<float> d_gate, View<float> d_up);

// out (B, T, H, D) and, for backward and for probes, the natural logarithm of each row's softmax
// denominator, log_sum_exp (B, H, T). Streams over tiles of the memory with a running
// maximum and sum (Milakov, Gimelshein 2018; Dao et al. 2022): no (T, S) buffer exists. Backward
// recomputes each tile of the pattern as exp(scores - log_sum_exp).
void attention_forward(const AttentionInput<float>& input, View<float> out,
                       View<float> log_sum_exp);
void attention_backward(const AttentionInput<float>& input, View<const float> out,
                        View<const float> log_sum_exp, View<const float> d_out,
                        const AttentionGradients<float>& gradients);

// Attention to a memory in parts: `out` (B, T, H, D) and `log_sum_exp` (B, H, T) of some of them
// become those of these and another part. With l and l' the log-sum-exps and m their maximum,
//   out = (exp(l − m)·out + exp(l' − m)·out') / (exp(l − m) + exp(l' − m))
//   log_sum_exp = m + log(exp(l − m) + exp(l' − m))
// so that out = 0 with log_sum_exp = −∞ stands for no part. Backward of each part is
// attention_backward with the final out and log_sum_exp; gradients of the parts add up.
void merge_attention(const AttentionPart<float>& part, View<float> out, View<float> log_sum_exp);

// Any rectangle of one head's scores (scaled and capped; −∞ where masked) or pattern, exactly as in
// forward (before dropout): out (query_end - query_begin, key_end - key_begin).
void attention_scores_tile(const AttentionInput<float>& input, const AttentionTile& tile,
                           View<float> out);
void attention_pattern_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                            const AttentionTile& tile, View<float> out);

// out = dropout(x) for x (N, C); the same call on gradients is its backward. out may be x.
void dropout(View<const float> x, const Dropout& dropout, View<float> out);

// out = x + y, any shape; out may be x or y.
void add(View<const float> x, View<const float> y, View<float> out);

// losses (N) = log Σ exp(logits) - logits[target], natural logarithm, for logits (N, V) and targets
// (N), never smoothed; smoothed losses are a second result. Throws Error{invalid_argument} for a
// target that is neither in [0, V) nor ignored_target.
void cross_entropy_forward(View<const float> logits, View<const std::int32_t> targets,
                           View<float> losses, const LabelSmoothing<float>& smoothing = {});
// The same losses, and logits overwritten by scale · ∂smoothed loss/∂logits = scale · (softmax −
// wanted), where wanted is 1 − rate at the target, plus rate / V everywhere.
void cross_entropy_forward_backward(View<float> logits, View<const std::int32_t> targets,
                                    float scale, View<float> losses,
                                    const LabelSmoothing<float>& smoothing = {});

// The same where the vocabulary comes in pieces. Forward adds a piece's logits (N, W) to the sums;
// then loss = normaliser − target logit, and the mean of −log p is normaliser − logit_sum / V.
// Backward overwrites the logits of a piece by their gradients, of the normalisers (N) of all
// pieces. `targets` are words of the whole vocabulary; ignored ones have gradients of zero, and
// sums that mean nothing.
void cross_entropy_piece_forward(View<const float> logits, const VocabularyPiece& piece,
                                 View<const std::int32_t> targets,
                                 const VocabularySums<float>& sums);
void cross_entropy_piece_backward(View<float> logits, const VocabularyPiece& piece,
                                  View<const std::int32_t> targets, View<const float> normalisers,
                                  float scale, float smoothing_rate = 0.0F);

// One AdamW update of a range of parameters and its moments.
void adamw_step(const AdamWState<float>& state, const AdamWStep<float>& step);

// Σ x², in double.
double squared_norm(std::span<const float> x);

// Whether every element is finite.
bool all_finite(std::span<const float> x);

}  // namespace heed::kernels
