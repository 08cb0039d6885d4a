// Probe points: the places inside a forward pass where every number can be seen. Their names are
// those of TransformerLens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/operands.h"
#include "tensor/view.h"

namespace heed {

enum class Point {
  embedding,          // hook_embed (B, T, C): token embedding
  position,           // hook_pos_embed (B, T, C)
  residual_pre,       // blocks.l.hook_resid_pre (B, T, C): the stream before block l
  norm_1_scale,       // blocks.l.ln1.hook_scale (B, T, 1): √(variance + epsilon)
  norm_1_normalized,  // blocks.l.ln1.hook_normalized (B, T, C): before gain and bias
  query,              // blocks.l.attn.hook_q (B, T, H, D)
  key,                // blocks.l.attn.hook_k (B, T, H, D)
  value,              // blocks.l.attn.hook_v (B, T, H, D)
  scores,             // blocks.l.attn.hook_attn_scores (B, H, T, S): scaled, −∞ where masked
  pattern,            // blocks.l.attn.hook_pattern (B, H, T, S): each row sums to one
  mixed_values,       // blocks.l.attn.hook_z (B, T, H, D): pattern · values, head by head
  attention_out,      // blocks.l.hook_attn_out (B, T, C)
  residual_mid,       // blocks.l.hook_resid_mid (B, T, C): after attention
  norm_2_scale,       // blocks.l.ln2.hook_scale (B, T, 1)
  norm_2_normalized,  // blocks.l.ln2.hook_normalized (B, T, C)
  neurons_pre,        // blocks.l.mlp.hook_pre (B, T, F): before the activation
  neurons_post,       // blocks.l.mlp.hook_post (B, T, F): after it
  feed_forward_out,   // blocks.l.hook_mlp_out (B, T, C)
  residual_post,      // blocks.l.hook_resid_post (B, T, C): the stream after block l
  final_scale,        // ln_final.hook_scale (B, T, 1)
  final_normalized,   // ln_final.hook_normalized (B, T, C)
};

// A point and, for those inside a block, its layer; −1 elsewhere.
struct Site {
  Point point;
  std::int64_t layer = -1;

  bool operator==(const Site&) const = default;
};

std::string site_name(const Site& site);                    // "blocks.3.attn.hook_pattern"
std::optional<Site> site_from_name(std::string_view name);  // nothing for an unknown name
std::vector<Site> all_sites(std::int64_t layers);           // in the order of a forward pass

// Whoever looks at a pass. Looking never changes it: with and without a probe, outputs are equal to
// the bit.
class Probe {
 public:
  virtual ~Probe() = default;

  // Asked before the values of points that would have to be computed for the probe alone (scores,
  // pattern, scales, normalised vectors, separate embeddings).
  virtual bool wants(const Site& site) const = 0;

  // `values` is borrowed for the time of the call; the leading dimensions are as listed at Point.
  virtual void observe(const Site& site, View<const float> values) = 0;

  // For layers where it is wanted, what any tile of scores or pattern can be computed from: the
  // operands of attention, with all of the memory, and its log_sum_exp (B, H, T). Borrowed,
  // likewise.
  virtual bool wants_attention(std::int64_t) const { return false; }
  virtual void observe_attention(std::int64_t, const kernels::AttentionInput<float>&,
                                 View<const float>) {}

  // In backward, for the sites that are wanted alone: the gradient of the loss by the values that
  // forward showed, in their shape. Where a site's values reach the loss in several ways, as those
  // of the residual stream do, it is the sum over all of them.
  virtual bool wants_gradient(const Site&) const { return false; }
  virtual void observe_gradient(const Site&, View<const float>) {}
};

}  // namespace heed
