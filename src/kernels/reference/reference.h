// An executable specification of kernels.h: plain single-threaded loops, in float or double, each
// backward below its forward, used by tests. Call with an explicit number type:
// layer_norm_forward<double>(...).
#pragma once

#include <span>

#include "kernels/elements.h"
#include "kernels/operands.h"

namespace heed::kernels::reference {

template <class T>
void embedding_forward(const EmbeddingInput<T>& input, View<T> out);
template <class T>
void embedding_backward(const EmbeddingInput<T>& input, View<const T> d_out,
                        const EmbeddingGradients<T>& gradients);

template <class T>
void layer_norm_forward(View<const T> x, const NormParameters<T>& parameters, View<T> out,
                        const NormStatistics<T>& statistics);
template <class T>
void layer_norm_backward(View<const T> x, const NormParameters<T>& parameters,
                         const NormStatistics<T>& statistics, View<const T> d_out, View<T> d_x,
                         const NormGradients<T>& gradients);

template <class T>
void rms_norm_forward(View<const T> x, const NormParameters<T>& parameters, View<T> out,
                      View<T> reciprocal_deviation);
template <class T>
void rms_norm_backward(View<const T> x, const NormParameters<T>& parameters,
                       View<const T> reciprocal_deviation, View<const T> d_out, View<T> d_x,
                       const NormGradients<T>& gradients);

template <class T>
void rotary_forward(View<T> x, const RotaryTable<T>& table);
template <class T>
void rotary_backward(View<T> d_x, const RotaryTable<T>& table);

template <class T>
void linear_forward(View<const T> x, const LinearParameters<T>& parameters, View<T> out);
template <class T>
void linear_backward_input(View<const T> weight, View<const T> d_out, View<T> d_x);
template <class T>
void linear_backward_parameters(View<const T> x, View<const T> d_out,
                                const LinearGradients<T>& gradients);

template <class T>
void activation_forward(View<const T> x, Activation activation, View<T> out);
template <class T>
void activation_backward(View<const T> x, Activation activation, View<const T> d_out, View<T> d_x);

template <class T>
void soft_cap_forward(View<const T> x, T cap, View<T> out);
template <class T>
void soft_cap_backward(View<const T> out, T cap, View<const T> d_out, View<T> d_x);

template <class T>
void gated_activation_forward(View<const T> gate, View<const T> up, Activation activation,
                              View<T> out);
template <class T>
void gated_activation_backward(View<const T> gate, View<const T> up, Activation activation,
                               View<const T> d_out, View<T> d_gate, View<T> d_up);

template <class T>
void attention_forward(const AttentionInput<T>& input, View<T> out, View<T> log_sum_exp);
template <class T>
void attention_backward(const AttentionInput<T>& input, View<const T> out,
                        View<const T> log_sum_exp, View<const T> d_out,
                        const AttentionGradients<T>& gradients);
template <class T>
void merge_attention(const AttentionPart<T>& part, View<T> out, View<T> log_sum_exp);
template <class T>
void attention_scores_tile(const AttentionInput<T>& input, const AttentionTile& tile, View<T> out);
template <class T>
void attention_pattern_tile(const AttentionInput<T>& input, View<const T> log_sum_exp,
                            const AttentionTile& tile, View<T> out);

template <class T>
void dropout(View<const T> x, const Dropout& dropout, View<T> out);
template <class T>
void add(View<const T> x, View<const T> y, View<T> out);

template <class T>
void cross_entropy_forward(View<const T> logits, View<const std::int32_t> targets, View<T> losses,
                           const LabelSmoothing<T>& smoothing = {});
template <class T>
void cross_entropy_forward_backward(View<T> logits, View<const std::int32_t> targets, T scale,
                                    View<T> losses, const LabelSmoothing<T>& smoothing = {});

template <class T>
void adamw_step(const AdamWState<T>& state, const AdamWStep<T>& step);
template <class T>
double squared_norm(std::span<const T> x);
template <class T>
bool all_finite(std::span<const T> x);

// Of kernels/elements.h.

template <class T>
void fill(View<T> x, T value);
template <class T>
void copy(View<const T> from, View<T> to);
template <class T>
void scale(View<T> x, T factor);
template <class T>
void accumulate(View<const T> from, View<T> to, T factor);
template <class T>
void subtract(View<const T> x, View<const T> y, View<T> out);
template <class T>
void reciprocal(View<const T> x, View<T> out);
template <class T>
bool equal_bits(View<const T> x, View<const T> y);
template <class T>
double sum(View<const T> x, double start);

template <class T>
void gather_rows(View<const T> from, std::span<const std::int32_t> indices, View<T> to);
template <class T>
void scatter_add_rows(View<const T> from, std::span<const std::int32_t> indices, View<T> to);

template <class T>
void softmax_rows(View<const T> scores, View<T> out);
template <class T>
void softmax_rows_backward(View<const T> pattern, View<T> gradient);
template <class T>
void mix_rows(View<const T> pattern, View<const T> value, View<T> out);

// mean absent: 0
template <class T>
void standardise_rows(View<const T> x, View<const T> mean, View<const T> reciprocal_deviation,
                      View<T> out);
template <class T>
struct StandardisedBackward {
  View<const T> x;                     // (N, C)
  View<const T> mean;                  // (N); absent: 0
  View<const T> reciprocal_deviation;  // (N)
  View<const T> gain;                  // (C)
  View<const T> d_out;                 // (N, C)
};
template <class T>
void standardise_rows_backward(const StandardisedBackward<T>& operands, View<T> d_rows,
                               View<T> d_scale);
template <class T>
void constant_scale_norm_backward(View<const T> gain, View<const T> reciprocal_deviation,
                                  Centring centring, View<const T> d_out, View<T> d_x);
template <class T>
void apply_gain(View<const T> x, const NormParameters<T>& parameters, View<T> out);

template <class T>
void sinusoids(View<T> sine, View<T> cosine);
template <class T>
void rotary_angles(std::span<const std::int64_t> positions, View<const double> frequencies,
                   double magnitude, View<T> cosine, View<T> sine);

// losses (N), and smoothed losses where they are wanted.
template <class T>
void cross_entropy_piece_losses(const VocabularySums<T>& sums, std::int64_t vocabulary,
                                View<const std::int32_t> targets, View<T> losses,
                                const LabelSmoothing<T>& smoothing);

}  // namespace heed::kernels::reference
