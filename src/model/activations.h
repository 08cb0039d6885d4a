// The values that a forward pass computes and backward needs, in one arena. N = B·T rows.
#pragma once

#include <vector>

#include "kernels/operands.h"
#include "model/architecture.h"
#include "tensor/arena.h"

namespace heed {

using NormSaved = kernels::NormStatistics<float>;

struct AttentionActivations {
  View<float> query_key_value;  // (N, A + 2K): projections
  // (N, A + K): queries and keys as attention reads them; absent where these are the projections.
  View<float> positioned;
  View<float> query_deviation;  // (N, H): of the query norm, reciprocal, or (N, 1) of all heads
  View<float> key_deviation;    // (N, G), or (N, 1); both absent without norms
  View<float> mixed_values;     // (N, A): heads side by side, the concatenation
  View<float> log_sum_exp;      // (B, H, T)
};

// Of attention to an encoder's M rows.
struct CrossActivations {
  View<float> query;         // (N, A)
  View<float> key_value;     // (M, 2K); absent where a cache holds them
  View<float> mixed_values;  // (N, A)
  View<float> log_sum_exp;   // N·H numbers: (B, H, T)
};

struct FeedForwardActivations {
  View<float> pre;     // (N, F): before the activation; the gate's where there is one
  View<float> linear;  // (N, F): what the gate multiplies; absent without one
  View<float> post;    // (N, F)
};

// Where norms come before their branches, a branch reads the norm of the stream and adds to the
// stream; where they come after, it reads the stream, and the norm of the sum is the stream. Where
// what a branch gives is normalised, it adds the norm of that.
struct BlockActivations {
  View<float> residual_pre;  // (N, C)
  NormSaved norm_1_saved;    // (N) each
  View<float> norm_1;        // (N, C): of residual_pre, or of residual_mid
  AttentionActivations attention;
  NormSaved attention_out_saved;  // of the norm of what attention gives; absent without one
  View<float> attention_result;   // (N, C): what attention gives; branch_out without such a norm
  View<float> residual_mid;       // (N, C): the sum after attention
  NormSaved cross_norm_saved;     // these four are absent without cross-attention
  View<float> cross_norm;         // (N, C): of residual_mid, or of residual_cross
  CrossActivations cross;
  View<float> residual_cross;  // (N, C): the sum after cross-attention
  NormSaved norm_2_saved;
  View<float> norm_2;  // (N, C): of the sum before feed-forward, or of residual_post
  FeedForwardActivations feed_forward;
  NormSaved feed_forward_out_saved;
  View<float> feed_forward_result;  // (N, C)
  View<float> branch_out;           // (N, C): what a branch adds to the stream
  View<float> residual_post;        // (N, C): the sum after feed-forward
  View<float> output;               // (N, C): the stream after the block; residual_post, or norm_2
};

// Of the head of a masked language model, all (N, C).
struct PredictionActivations {
  View<float> pre;   // before the activation
  View<float> post;  // after it
  NormSaved norm_saved;
  View<float> out;
};

// What comes before the blocks and after them.
struct StackEnds {
  View<float> embedding_sum;
  NormSaved embedding_norm_saved;
  NormSaved final_norm_saved;
  PredictionActivations prediction;
  View<float> final_norm;
};

// Which activations stay in memory after the pass.
enum class Keep {
  every_block,  // for backward
  residuals,    // for a backward pass that recomputes each block from its input (checkpointing)
  points,     // for looking at points later: what follows from a few others is shared by all blocks
  one_block,  // for inference: each block overwrites the previous one
};

class StackActivations {
 public:
  // A stack with cross-attention that projects its memory in every pass has `memory_rows` of it.
  // They lie where the parameters of their passes do.
  StackActivations(const StackSpecification& config, std::int64_t batch, std::int64_t positions,
                   Keep keep, std::int64_t memory_rows = 0, Device device = {});

  // Memory of such activations.
  static std::int64_t bytes_needed(const StackSpecification& config, std::int64_t batch,
                                   std::int64_t positions, Keep keep, std::int64_t memory_rows = 0);

  // Makes them those of another batch, in the same memory where it suffices.
  void resize(std::int64_t batch, std::int64_t positions, std::int64_t memory_rows = 0);

  Device device() const { return device_; }
  // A copy elsewhere; what was made from the views of these stays here.
  StackActivations on(Device device) const;
  // Of a view of `from`, whose copy these are, the same elements of the copy.
  View<const float> same_of(const StackActivations& from, View<const float> view) const {
    return arena_.same_of(from.arena_, view);
  }

  std::int64_t batch() const { return batch_; }
  std::int64_t positions() const { return positions_; }
  Keep keep() const { return keep_; }
  const BlockActivations& block(std::int64_t layer) const { return blocks_[layer]; }
  // (N, C): the sum of the embeddings, and its norm or itself, which the first block reads.
  View<float> embedding_sum() const { return ends_.embedding_sum; }
  const NormSaved& embedding_norm_saved() const { return ends_.embedding_norm_saved; }
  View<float> embedding() const { return blocks_.front().residual_pre; }
  View<float> last_residual() const { return blocks_.back().output; }  // (N, C)
  const NormSaved& final_norm_saved() const { return ends_.final_norm_saved; }
  // (N, C): the final norm's output; the stream's end where there is no such norm.
  View<float> final_norm() const { return ends_.final_norm; }
  // (N, C): what the unembedding reads: that, or the prediction head's output.
  View<float> unembedding_in() const {
    return ends_.prediction.out.present() ? ends_.prediction.out : ends_.final_norm;
  }
  const PredictionActivations& prediction() const { return ends_.prediction; }
  std::size_t bytes() const { return arena_.all().size_bytes(); }

 private:
  StackSpecification config_;
  std::int64_t batch_;
  std::int64_t positions_;
  Keep keep_;
  Device device_;
  std::int64_t memory_rows_ = 0;
  Arena<float> arena_;
  std::vector<BlockActivations> blocks_;
  StackEnds ends_;
};

// Gradients of activations. All blocks share them: backward needs those of one block at a time.
struct ActivationGradientViews {
  View<float> residual;         // (N, C), accumulates
  View<float> branch;           // (N, C): of a branch's output
  View<float> norm;             // (N, C): of a norm's output
  View<float> residual_mid;     // (N, C): a copy of residual, where the residual is parallel
  View<float> shared_norm;      // (N, C): of what feed-forward read, where branches share a norm
  View<float> query_key_value;  // (N, A + 2K)
  View<float> mixed_values;     // (N, A): of either attention
  View<float> cross_query;      // (N, A)
  View<float> cross_key_value;  // (M, 2K)
  View<float> memory;           // (M, C): what a cross-attention adds to the memory's gradient
  View<float> neurons;          // (N, F): after, then before the activation
  View<float> linear;           // (N, F): of gated layers
};

class ActivationGradients : public ActivationGradientViews {
 public:
  ActivationGradients(const StackSpecification& config, std::int64_t rows,
                      std::int64_t memory_rows = 0, Device device = {});
  static std::int64_t bytes_needed(const StackSpecification& config, std::int64_t rows,
                                   std::int64_t memory_rows = 0);

  // Makes them those of another batch, in the same memory where it suffices.
  void resize(const StackSpecification& config, std::int64_t rows, std::int64_t memory_rows = 0);

 private:
  Device device_;
  Arena<float> arena_;
};

}  // namespace heed
