// The kernels of the processor and those of an accelerator, which kernels/dispatch.cc calls by
// where their operands are: the same functions, with the same arguments. Those of an accelerator
// get views of its memory alone, but for integers and options.
#pragma once

#include "kernels/attention_sequences.h"
#include "kernels/attention_summaries.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "kernels/prepared_weight.h"
#include "kernels/quantised_cache.h"
#include "kernels/sparse_rows.h"

namespace heed::kernels {

using Copy = void(View<const float>, View<float>);
using CopyBytes = void(View<const std::byte>, View<std::byte>);
using CopyIntegers = void(View<const std::int32_t>, View<std::int32_t>);
using Attend = void(const AttentionInput<float>&, View<float>, View<float>);
using AttendBackward = void(const AttentionInput<float>&, View<const float>, View<const float>,
                            View<const float>, const AttentionGradients<float>&);
using AttendToCache = void(const QuantisedCacheAttention&, View<float>, View<float>);
using AttendSequences = void(std::span<const SequenceAttention>);
using AttendSequencesBackward = void(std::span<const SequenceAttentionBackward>);

namespace cpu {
Copy copy;
CopyBytes copy;
CopyIntegers copy;
Attend attention_forward;
AttendBackward attention_backward;
AttendToCache attention_forward;
AttendSequences attention_forward;
AttendSequencesBackward attention_backward;
decltype(kernels::embedding_forward) embedding_forward;
decltype(kernels::embedding_backward) embedding_backward;
decltype(kernels::layer_norm_forward) layer_norm_forward;
decltype(kernels::layer_norm_backward) layer_norm_backward;
decltype(kernels::rms_norm_forward) rms_norm_forward;
decltype(kernels::rms_norm_backward) rms_norm_backward;
decltype(kernels::rotary_forward) rotary_forward;
decltype(kernels::rotary_backward) rotary_backward;
decltype(kernels::linear_forward) linear_forward;
decltype(kernels::prepared_linear_forward) prepared_linear_forward;
decltype(kernels::linear_backward_input) linear_backward_input;
decltype(kernels::linear_backward_parameters) linear_backward_parameters;
decltype(kernels::activation_forward) activation_forward;
decltype(kernels::activation_backward) activation_backward;
decltype(kernels::soft_cap_forward) soft_cap_forward;
decltype(kernels::soft_cap_backward) soft_cap_backward;
decltype(kernels::gated_activation_forward) gated_activation_forward;
decltype(kernels::gated_activation_backward) gated_activation_backward;
decltype(kernels::merge_attention) merge_attention;
decltype(kernels::attention_scores_tile) attention_scores_tile;
decltype(kernels::attention_pattern_tile) attention_pattern_tile;
decltype(kernels::attention_row_statistics) attention_row_statistics;
decltype(kernels::attention_pooled_tile) attention_pooled_tile;
decltype(kernels::dropout) dropout;
decltype(kernels::add) add;
decltype(kernels::cross_entropy_forward) cross_entropy_forward;
decltype(kernels::cross_entropy_forward_backward) cross_entropy_forward_backward;
decltype(kernels::cross_entropy_piece_forward) cross_entropy_piece_forward;
decltype(kernels::cross_entropy_piece_backward) cross_entropy_piece_backward;
decltype(kernels::cross_entropy_piece_losses) cross_entropy_piece_losses;
decltype(kernels::adamw_step) adamw_step;
decltype(kernels::squared_norm) squared_norm;
decltype(kernels::all_finite) all_finite;
decltype(kernels::fill) fill;
decltype(kernels::scale) scale;
decltype(kernels::accumulate) accumulate;
decltype(kernels::subtract) subtract;
decltype(kernels::reciprocal) reciprocal;
decltype(kernels::equal_bits) equal_bits;
decltype(kernels::sum) sum;
decltype(kernels::gather_rows) gather_rows;
decltype(kernels::scatter_add_rows) scatter_add_rows;
decltype(kernels::softmax_rows) softmax_rows;
decltype(kernels::softmax_rows_backward) softmax_rows_backward;
decltype(kernels::mix_rows) mix_rows;
decltype(kernels::standardise_rows) standardise_rows;
decltype(kernels::standardise_rows_backward) standardise_rows_backward;
decltype(kernels::constant_scale_norm_backward) constant_scale_norm_backward;
decltype(kernels::apply_gain) apply_gain;
decltype(kernels::quantise_rows) quantise_rows;
decltype(kernels::dequantise_rows) dequantise_rows;
// These the processor alone has: what is rare, or done once.
decltype(kernels::sinusoids) sinusoids;
decltype(kernels::rotary_angles) rotary_angles;
decltype(kernels::fill_normal) fill_normal;
decltype(kernels::touch_pages) touch_pages;
decltype(kernels::find_not_finite) find_not_finite;
decltype(kernels::add_sparse_rows) add_sparse_rows;
decltype(kernels::multiply_sparse_rows) multiply_sparse_rows;
}  // namespace cpu

namespace cuda {
Copy copy;
CopyBytes copy;
Attend attention_forward;
AttendBackward attention_backward;
AttendToCache attention_forward;
AttendSequences attention_forward;
AttendSequencesBackward attention_backward;
decltype(kernels::embedding_forward) embedding_forward;
decltype(kernels::embedding_backward) embedding_backward;
decltype(kernels::layer_norm_forward) layer_norm_forward;
decltype(kernels::layer_norm_backward) layer_norm_backward;
decltype(kernels::rms_norm_forward) rms_norm_forward;
decltype(kernels::rms_norm_backward) rms_norm_backward;
decltype(kernels::rotary_forward) rotary_forward;
decltype(kernels::rotary_backward) rotary_backward;
decltype(kernels::linear_forward) linear_forward;
decltype(kernels::prepared_linear_forward) prepared_linear_forward;
decltype(kernels::linear_backward_input) linear_backward_input;
decltype(kernels::linear_backward_parameters) linear_backward_parameters;
decltype(kernels::activation_forward) activation_forward;
decltype(kernels::activation_backward) activation_backward;
decltype(kernels::soft_cap_forward) soft_cap_forward;
decltype(kernels::soft_cap_backward) soft_cap_backward;
decltype(kernels::gated_activation_forward) gated_activation_forward;
decltype(kernels::gated_activation_backward) gated_activation_backward;
decltype(kernels::merge_attention) merge_attention;
decltype(kernels::attention_scores_tile) attention_scores_tile;
decltype(kernels::attention_pattern_tile) attention_pattern_tile;
decltype(kernels::attention_row_statistics) attention_row_statistics;
decltype(kernels::attention_pooled_tile) attention_pooled_tile;
decltype(kernels::dropout) dropout;
decltype(kernels::add) add;
decltype(kernels::cross_entropy_forward) cross_entropy_forward;
decltype(kernels::cross_entropy_forward_backward) cross_entropy_forward_backward;
decltype(kernels::cross_entropy_piece_forward) cross_entropy_piece_forward;
decltype(kernels::cross_entropy_piece_backward) cross_entropy_piece_backward;
decltype(kernels::cross_entropy_piece_losses) cross_entropy_piece_losses;
decltype(kernels::adamw_step) adamw_step;
decltype(kernels::squared_norm) squared_norm;
decltype(kernels::all_finite) all_finite;
decltype(kernels::fill) fill;
decltype(kernels::scale) scale;
decltype(kernels::accumulate) accumulate;
decltype(kernels::subtract) subtract;
decltype(kernels::reciprocal) reciprocal;
decltype(kernels::equal_bits) equal_bits;
decltype(kernels::sum) sum;
decltype(kernels::gather_rows) gather_rows;
decltype(kernels::scatter_add_rows) scatter_add_rows;
decltype(kernels::softmax_rows) softmax_rows;
decltype(kernels::softmax_rows_backward) softmax_rows_backward;
decltype(kernels::mix_rows) mix_rows;
decltype(kernels::standardise_rows) standardise_rows;
decltype(kernels::standardise_rows_backward) standardise_rows_backward;
decltype(kernels::constant_scale_norm_backward) constant_scale_norm_backward;
decltype(kernels::apply_gain) apply_gain;
decltype(kernels::quantise_rows) quantise_rows;
decltype(kernels::dequantise_rows) dequantise_rows;
}  // namespace cuda

}  // namespace heed::kernels
