// Probe points that the fast path never holds in memory: computed from saved activations, and only
// for a probe that wants them. (The stream head by head: head_points.h.)
#pragma once

#include <optional>
#include <span>

#include "kernels/attention_sequences.h"
#include "kernels/elements.h"
#include "model/activations.h"
#include "model/pass.h"

namespace heed {

// The points of an attention: of a sequence to itself, or to an encoder's result.
struct AttentionPoints {
  PointKind query;
  PointKind key;
  PointKind value;
  PointKind scores;
  PointKind pattern;
  PointKind mixed_values;
};
inline constexpr AttentionPoints self_attention_points{PointKind::query,   PointKind::key,
                                                       PointKind::value,   PointKind::scores,
                                                       PointKind::pattern, PointKind::mixed_values};
inline constexpr AttentionPoints cross_attention_points{
    PointKind::cross_query,  PointKind::cross_key,     PointKind::cross_value,
    PointKind::cross_scores, PointKind::cross_pattern, PointKind::cross_mixed_values};

// What a pattern follows from, and its log-sum-exp (B, H, T): of a whole pass, or of one of several
// texts.
struct Attended {
  kernels::AttentionInput<float> input;
  View<const float> log_sum_exp;
};

// scores and pattern (B, H, T, S) of a layer, of the whole pass or of each of its texts.
void observe_attention(const Pass& pass, std::int64_t layer, const AttentionPoints& points,
                       std::span<const Attended> texts);

// Their gradients, from the gradient of the mixed values of each, d_out (B, T, H, D).
void observe_attention_gradients(const Pass& pass, std::int64_t layer,
                                 const AttentionPoints& points,
                                 std::span<const kernels::SequenceAttentionBackward> texts);

// The points of a norm: scale (B, T, 1), normalized (B, T, C) and, where it has one of its own, its
// input (B, T, C).
struct NormPoints {
  PointKind scale;
  PointKind normalized;
  std::optional<PointKind> input{};
};
inline constexpr NormPoints norm_1_points{PointKind::norm_1_scale, PointKind::norm_1_normalized};
inline constexpr NormPoints cross_norm_points{PointKind::cross_norm_scale,
                                              PointKind::cross_norm_normalized};
inline constexpr NormPoints norm_2_points{PointKind::norm_2_scale, PointKind::norm_2_normalized,
                                          PointKind::feed_forward_in};
// Where the norm is of the sum after feed-forward, not of what feed-forward reads.
inline constexpr NormPoints norm_of_sum_points{PointKind::norm_2_scale,
                                               PointKind::norm_2_normalized};
// Of what a branch gives.
inline constexpr NormPoints attention_out_norm_points{PointKind::attention_out_scale,
                                                      PointKind::attention_out_normalized};
inline constexpr NormPoints feed_forward_out_norm_points{PointKind::feed_forward_out_scale,
                                                         PointKind::feed_forward_out_normalized};
inline constexpr NormPoints final_norm_points{PointKind::final_scale, PointKind::final_normalized};

// Of a norm of the stream x (N, C).
void observe_norm(const Pass& pass, std::int64_t layer, const NormPoints& points,
                  View<const float> x, const NormSaved& saved);

// Their gradients, from the gradient of the norm's output.
struct NormOperands {
  View<const float> x;  // (N, C), edited where the pass edits the norm's input
  const NormSaved& saved;
  const kernels::NormParameters<float>& parameters;
  View<const float> d_out;  // (N, C)
};
void observe_norm_gradients(const StackSpecification& stack, const Pass& pass, std::int64_t layer,
                            const NormPoints& points, const NormOperands& norm);

// What such a norm multiplies by its gain.
inline kernels::StandardisedRows standardised_rows(View<const float> x, const NormSaved& saved) {
  return {.x = x, .mean = saved.mean, .reciprocal_deviation = saved.reciprocal_deviation};
}

// Token and position embedding, separately, (B, T, C).
void observe_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input);

// Logits (B, T, V) of the final norm's output x (N, C).
void observe_logits(const Pass& pass, const kernels::LinearParameters<float>& unembedding,
                    View<const float> x);

// The gradient of their loss, `scale` times the summed cross-entropy of predicting the targets.
struct LogitLoss {
  View<const std::int32_t> targets;  // (N)
  float scale = 1.0F;
  float label_smoothing = 0.0F;
};
void observe_logit_gradients(const Pass& pass, const kernels::LinearParameters<float>& unembedding,
                             View<const float> x, const LogitLoss& loss);

}  // namespace heed
