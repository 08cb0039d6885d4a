// Probe points that the fast path never holds in memory: computed from saved activations, and only
// for a probe that wants them. (The stream head by head: head_points.h.)
#pragma once

#include <optional>

#include "kernels/operands.h"
#include "model/activations.h"
#include "model/pass.h"

namespace heed {

// scores and pattern (B, H, T, S) of a layer.
void observe_attention(const Pass& pass, std::int64_t layer,
                       const kernels::AttentionInput<float>& input, View<const float> log_sum_exp);

// Their gradients, from the gradient of the mixed values, d_mixed (B, T, H, D).
void observe_attention_gradients(const Pass& pass, std::int64_t layer,
                                 const kernels::AttentionInput<float>& input,
                                 View<const float> log_sum_exp, View<const float> d_mixed);

// The points of a norm: scale (B, T, 1), normalized (B, T, C) and, where it has one of its own, its
// input (B, T, C).
struct NormPoints {
  PointKind scale;
  PointKind normalized;
  std::optional<PointKind> input{};
};
inline constexpr NormPoints norm_1_points{PointKind::norm_1_scale, PointKind::norm_1_normalized};
inline constexpr NormPoints norm_2_points{PointKind::norm_2_scale, PointKind::norm_2_normalized,
                                          PointKind::feed_forward_in};
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
void observe_norm_gradients(const Pass& pass, std::int64_t layer, const NormPoints& points,
                            const NormOperands& norm);

// Token and position embedding, separately, (B, T, C).
void observe_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input);

// Logits (B, T, V) of the final norm's output x (N, C).
void observe_logits(const Pass& pass, const kernels::LinearParameters<float>& unembedding,
                    View<const float> x);

// The gradient of their loss, `scale` times the summed cross-entropy of predicting targets (N).
void observe_logit_gradients(const Pass& pass, const kernels::LinearParameters<float>& unembedding,
                             View<const float> x, View<const std::int32_t> targets, float scale);

}  // namespace heed
