// Probe points: the values of a forward pass that can be observed, by TransformerLens's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/operands.h"
#include "model/architecture.h"
#include "tensor/view.h"

namespace heed {

class Sequences;

enum class PointKind {
  embedding,            // hook_embed (B, T, C): token embedding
  position,             // hook_pos_embed (B, T, C)
  residual_pre,         // blocks.l.hook_resid_pre (B, T, C): the stream before block l
  attention_in,         // blocks.l.hook_attn_in (B, T, H, C): the stream as each head reads it
  query_input,          // blocks.l.hook_q_input (B, T, H, C): as each head's query reads it
  key_input,            // blocks.l.hook_k_input (B, T, G, C): as each key/value head's key reads it
  value_input,          // blocks.l.hook_v_input (B, T, G, C)
  norm_1_scale,         // blocks.l.ln1.hook_scale (B, T, 1): √(variance + epsilon)
  norm_1_normalized,    // blocks.l.ln1.hook_normalized (B, T, C): before gain and bias
  query,                // blocks.l.attn.hook_q (B, T, H, D)
  key,                  // blocks.l.attn.hook_k (B, T, G, D)
  value,                // blocks.l.attn.hook_v (B, T, G, D)
  rotated_query,        // blocks.l.attn.hook_rot_q (B, T, H, D): normalised and rotated
  rotated_key,          // blocks.l.attn.hook_rot_k (B, T, G, D)
  scores,               // blocks.l.attn.hook_attn_scores (B, H, T, S): scaled, −∞ where masked
  pattern,              // blocks.l.attn.hook_pattern (B, H, T, S): each row sums to one
  mixed_values,         // blocks.l.attn.hook_z (B, T, H, D): pattern · values, head by head
  head_results,         // blocks.l.attn.hook_result (B, T, H, C): what each head adds to the stream
  attention_out_scale,  // blocks.l.ln1_post.hook_scale (B, T, 1): of a norm of their sum
  attention_out_normalized,  // blocks.l.ln1_post.hook_normalized (B, T, C)
  attention_out,  // blocks.l.hook_attn_out (B, T, C): their sum and the bias, or its norm, after
                  // dropout
  residual_mid,   // blocks.l.hook_resid_mid (B, T, C): the sum after attention
  // of attention to an encoder's M positions, in decoder.l.:
  cross_norm_scale,        // ln2.hook_scale (B, T, 1); ln2 is then this norm, and ln3 the next
  cross_norm_normalized,   // ln2.hook_normalized (B, T, C)
  cross_query,             // cross_attn.hook_q (B, T, H, D)
  cross_key,               // cross_attn.hook_k (B, M, G, D)
  cross_value,             // cross_attn.hook_v (B, M, G, D)
  cross_scores,            // cross_attn.hook_attn_scores (B, H, T, M)
  cross_pattern,           // cross_attn.hook_pattern (B, H, T, M)
  cross_mixed_values,      // cross_attn.hook_z (B, T, H, D)
  cross_attention_out,     // hook_cross_attn_out (B, T, C)
  residual_cross,          // hook_resid_mid_cross (B, T, C): the sum after cross-attention
  feed_forward_in,         // blocks.l.hook_mlp_in (B, T, C): the stream as feed-forward reads it
  norm_2_scale,            // blocks.l.ln2.hook_scale (B, T, 1)
  norm_2_normalized,       // blocks.l.ln2.hook_normalized (B, T, C)
  neurons_pre,             // blocks.l.mlp.hook_pre (B, T, F): before the activation
  neurons_linear,          // blocks.l.mlp.hook_pre_linear (B, T, F): what the activation gates
  neurons_post,            // blocks.l.mlp.hook_post (B, T, F): after it
  feed_forward_out_scale,  // blocks.l.ln2_post.hook_scale (B, T, 1): of a norm of its output
  feed_forward_out_normalized,  // blocks.l.ln2_post.hook_normalized (B, T, C)
  feed_forward_out,             // blocks.l.hook_mlp_out (B, T, C)
  residual_post,                // blocks.l.hook_resid_post (B, T, C): the stream after block l
  normalized_residual_post,     // blocks.l.hook_normalized_resid_post (B, T, C): its norm, which is
                                // the stream where norms come after their branches
  final_scale,                  // ln_final.hook_scale (B, T, 1)
  final_normalized,             // ln_final.hook_normalized (B, T, C)
  unembedding_in,               // unembed.hook_in (B, T, C): the final norm's output
  logits,                       // unembed.hook_out (B, T, V); cannot be edited
};

// A point: its kind, its layer, −1 outside the blocks, and its stack.
struct Point {
  PointKind kind;
  std::int64_t layer = -1;
  StackSite site = StackSite::only;

  bool operator==(const Point&) const = default;
};

// "blocks.3.attn.hook_pattern", or "encoder.3.attn.hook_pattern" of a model of two stacks
std::string point_name(const Point& point);
std::optional<Point> point_from_name(std::string_view name);  // nothing for an unknown name
// Whether a pass of the stack has the point: positions only where there is a table, rotated queries
// only where they rotate, and so on.
bool has_point(const StackSpecification& stack, PointKind kind);
// Of attention to an encoder's result.
bool is_cross_point(PointKind kind);
// Scores and patterns: a row of keys for each query, (B, H, T, S).
bool is_plane(PointKind kind);
// In the order of a forward pass.
std::vector<Point> all_points(const StackSpecification& stack, StackSite site = StackSite::only);
std::vector<Point> all_points(const Architecture& architecture);
std::vector<Point> all_points(std::int64_t layers);  // of GPT-2 with so many layers

// An observer of a pass. Observing never changes it: with and without a probe, outputs are equal to
// the bit.
class Probe {
 public:
  virtual ~Probe() = default;

  // Before and after each branch of a block, forward and backward: for progress, or to end the pass
  // by an exception.
  virtual void tick() {}

  // Before the first point of every pass of a stack: which of its texts each row is of. Values of
  // texts of different lengths are shown as (1, N, …), one text below the other, and their scores
  // and patterns as (B, H, T, S) of the longest: after a text's end, scores are −∞ and patterns 0.
  virtual void begin_pass(StackSite, const Sequences&) {}

  // What it is shown. Scores, pattern, scales, normalised vectors, separate embeddings, the stream
  // head by head and logits are computed for the probe alone.
  virtual bool wants(const Point& point) const = 0;

  // For wanted points only: `values` is borrowed for the time of the call, shaped as listed at
  // PointKind, and may be strided.
  virtual void observe(const Point& point, View<const float> values) = 0;

  // For layers where it is wanted: the operands of attention, with all keys and values, and its
  // log_sum_exp (B, H, T), from which any tile of scores or pattern can be computed. Borrowed for
  // the time of the call. Those of texts of different lengths are shown one by one, each with its
  // number in the pass.
  virtual bool wants_attention(std::int64_t) const { return false; }
  virtual void observe_attention(std::int64_t, const kernels::AttentionInput<float>&,
                                 View<const float>) {}
  // The same where a model has several attentions: `pattern` is the point of its pattern.
  virtual bool wants_attention_at(const Point& pattern) const {
    return pattern.kind == PointKind::pattern && pattern.site == StackSite::only &&
           wants_attention(pattern.layer);
  }
  virtual void observe_attention_at(const Point& pattern,
                                    const kernels::AttentionInput<float>& input,
                                    View<const float> log_sum_exp, std::int64_t /*text*/) {
    observe_attention(pattern.layer, input, log_sum_exp);
  }

  // In backward, for wanted points only: the gradient of the loss with respect to the values that
  // forward showed, in their shape: the total derivative, over every path to the loss.
  virtual bool wants_gradient(const Point&) const { return false; }
  virtual void observe_gradient(const Point&, View<const float>) {}
};

}  // namespace heed
