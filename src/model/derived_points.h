// Probe points that the fast path never holds in memory: computed from what it saved, and only for
// a probe that wants them.
#pragma once

#include "kernels/operands.h"
#include "model/activations.h"
#include "model/pass.h"

namespace heed {

// scores and pattern (B, H, T, S) of a layer.
void observe_attention(const Pass& pass, std::int64_t layer,
                       const kernels::AttentionInput<float>& input, View<const float> log_sum_exp);

// Their gradients, from that of the mixed values, d_mixed (B, T, H, D).
void observe_attention_gradients(const Pass& pass, std::int64_t layer,
                                 const kernels::AttentionInput<float>& input,
                                 View<const float> log_sum_exp, View<const float> d_mixed);

// scale (B, T, 1) and normalized (B, T, C) of a norm that read x (N, C).
struct NormSites {
  Point scale;
  Point normalized;
};
void observe_norm(const Pass& pass, std::int64_t layer, const NormSites& sites, View<const float> x,
                  const NormSaved& saved);

// Their gradients, from that of the norm's output.
struct NormOperands {
  View<const float> x;  // (N, C)
  const NormSaved& saved;
  const kernels::NormParameters<float>& parameters;
  View<const float> d_out;  // (N, C)
};
void observe_norm_gradients(const Pass& pass, std::int64_t layer, const NormSites& sites,
                            const NormOperands& norm);

// Token and position embedding, apart, (B, T, C).
void observe_embedding(const Pass& pass, const kernels::EmbeddingInput<float>& input);

}  // namespace heed
