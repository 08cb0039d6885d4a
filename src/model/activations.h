// The values that a forward pass computes and backward needs, in one arena. N = B·T rows.
#pragma once

#include <vector>

#include "kernels/operands.h"
#include "model/config.h"
#include "tensor/arena.h"

namespace heed {

using NormSaved = kernels::NormStatistics<float>;

struct AttentionActivations {
  View<float> query_key_value;  // (N, 3A)
  View<float> mixed_values;     // (N, A): heads side by side, the concatenation
  View<float> log_sum_exp;      // (B, H, T)
};

struct FeedForwardActivations {
  View<float> pre;   // (N, F)
  View<float> post;  // (N, F)
};

struct BlockActivations {
  View<float> residual_pre;  // (N, C)
  NormSaved norm_1_saved;    // (N) each
  View<float> norm_1;        // (N, C)
  AttentionActivations attention;
  View<float> residual_mid;  // (N, C)
  NormSaved norm_2_saved;
  View<float> norm_2;  // (N, C)
  FeedForwardActivations feed_forward;
  View<float> branch_out;     // (N, C): what attention, then feed-forward, adds to the stream
  View<float> residual_post;  // (N, C): residual_pre of the next block
};

// Which activations stay in memory after the pass.
enum class Keep {
  every_block,  // for backward
  residuals,    // for a backward pass that recomputes each block from its input (checkpointing)
  one_block,    // for inference: each block overwrites the previous one
};

class GptActivations {
 public:
  GptActivations(const GptConfig& config, std::int64_t batch, std::int64_t positions, Keep keep);

  // Memory of such activations.
  static std::int64_t bytes_needed(const GptConfig& config, std::int64_t batch,
                                   std::int64_t positions, Keep keep);

  std::int64_t batch() const { return batch_; }
  std::int64_t positions() const { return positions_; }
  Keep keep() const { return keep_; }
  const BlockActivations& block(std::int64_t layer) const { return blocks_[layer]; }
  View<float> embedding() const { return blocks_.front().residual_pre; }      // (N, C)
  View<float> last_residual() const { return blocks_.back().residual_post; }  // (N, C)
  const NormSaved& final_norm_saved() const { return final_norm_saved_; }
  View<float> final_norm() const { return final_norm_; }  // (N, C)
  std::size_t bytes() const { return arena_.all().size_bytes(); }

 private:
  std::int64_t batch_;
  std::int64_t positions_;
  Keep keep_;
  Arena<float> arena_;
  std::vector<BlockActivations> blocks_;
  NormSaved final_norm_saved_;
  View<float> final_norm_;
};

// Gradients of activations. All blocks share them: backward needs those of one block at a time.
struct ActivationGradientViews {
  View<float> residual;         // (N, C), accumulates
  View<float> branch;           // (N, C): of a branch's output
  View<float> norm;             // (N, C): of a norm's output
  View<float> query_key_value;  // (N, 3A)
  View<float> mixed_values;     // (N, A)
  View<float> neurons;          // (N, F): after, then before the activation
};

class GptActivationGradients : public ActivationGradientViews {
 public:
  GptActivationGradients(const GptConfig& config, std::int64_t rows);
  static std::int64_t bytes_needed(const GptConfig& config, std::int64_t rows);

 private:
  Arena<float> arena_;
};

}  // namespace heed
