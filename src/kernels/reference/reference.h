// An executable specification of kernels.h: plain single-threaded loops, in float or double, each
// backward below its forward, used by tests. Call with an explicit number type:
// layer_norm_forward<double>(...).
#pragma once

#include <span>

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

}  // namespace heed::kernels::reference
