// All parameters of a GPT in one arena, in a fixed order; gradients and optimizer moments are
// arenas of the same layout.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/operands.h"
#include "kernels/packed_weight.h"
#include "kernels/prepared_weight.h"
#include "model/config.h"
#include "tensor/arena.h"

namespace heed {

using NormWeights = kernels::NormParameters<float>;
using NormWeightGradients = kernels::NormGradients<float>;
using LinearWeights = kernels::LinearParameters<float>;
using LinearWeightGradients = kernels::LinearGradients<float>;

struct BlockParameters {
  NormWeights norm_1;
  LinearWeights query_key_value;  // (3·A, C): rows of query, then key, then value
  LinearWeights projection;       // (C, A)
  NormWeights norm_2;
  LinearWeights up;    // (F, C)
  LinearWeights down;  // (C, F)
};

struct BlockGradients {
  NormWeightGradients norm_1;
  LinearWeightGradients query_key_value;
  LinearWeightGradients projection;
  NormWeightGradients norm_2;
  LinearWeightGradients up;
  LinearWeightGradients down;
};

// The order of the arena, with Hugging Face's names (weights are [out, in] in memory):
//   wte.weight (V, C), wpe.weight (P, C),
//   for each layer l: h.l.ln_1.{weight, bias} (C), h.l.attn.c_attn.{weight (3A, C), bias (3A)},
//     h.l.attn.c_proj.{weight (C, A), bias (C)}, h.l.ln_2.{weight, bias} (C),
//     h.l.mlp.c_fc.{weight (F, C), bias (F)}, h.l.mlp.c_proj.{weight (C, F), bias (C)},
//   ln_f.{weight, bias} (C), lm_head.weight (V, C) when it is not tied, and lm_head.bias (V) when
//   the unembedding has one.
// Biases are absent when the config has none.
ArenaLayout gpt_layout(const GptConfig& config);

class GptParameters {
 public:
  explicit GptParameters(const GptConfig& config);  // zeros

  // GPT-2's initialisation: weights normal(0, initial_deviation), output projections of attention
  // and feed-forward scaled by 1/√(2L), gains one, biases zero. A pure function of config and seed.
  void initialize(std::uint64_t seed);

  const ArenaLayout& layout() const { return layout_; }
  std::span<float> all() { return arena_.all(); }
  std::span<const float> all() const { return arena_.all(); }
  View<float> tensor(std::string_view name);  // throws Error{not_found}
  View<const float> tensor(std::string_view name) const;

  View<const float> token_embedding() const { return tensor("wte.weight"); }     // (V, C)
  View<const float> position_embedding() const { return tensor("wpe.weight"); }  // (P, C)
  const LinearWeights& unembedding() const { return unembedding_; }              // (V, C)
  const BlockParameters& block(std::int64_t layer) const { return blocks_[layer]; }
  const NormWeights& final_norm() const { return final_norm_; }

  // The precision of every matrix product, forward and backward [f32].
  void set_precision(kernels::Precision precision);

  // Quantises the matrices of linear layers to bf16, int8 or int4 for inference; f32 returns to the
  // parameters themselves. Parameters must not change while prepared weights are in use.
  void prepare(kernels::WeightFormat format);
  kernels::WeightFormat prepared_format() const { return prepared_format_; }

  // Keeps a copy of the matrices in the layout of f32 products, which speeds up prompts of more
  // than a few tokens, in packed_bytes() of additional memory. Does nothing where the matrices are
  // prepared in another format. Parameters must not change afterwards.
  void pack();
  static std::int64_t packed_bytes(const GptConfig& config);

 private:
  GptConfig config_;
  ArenaLayout layout_;
  Arena<float> arena_;
  std::vector<BlockParameters> blocks_;
  NormWeights final_norm_;
  std::vector<LinearWeights*> linears();

  LinearWeights unembedding_;
  kernels::WeightFormat prepared_format_ = kernels::WeightFormat::f32;
  std::vector<kernels::PreparedWeight> prepared_;
  std::vector<kernels::PackedWeight> packed_;
};

class GptGradients {
 public:
  explicit GptGradients(const GptConfig& config);  // zeros

  const ArenaLayout& layout() const { return layout_; }
  std::span<float> all() { return arena_.all(); }
  std::span<const float> all() const { return arena_.all(); }
  void clear();
  View<float> tensor(std::string_view name);

  View<float> unembedding();
  View<float> unembedding_bias();  // absent when the unembedding has none
  const BlockGradients& block(std::int64_t layer) const { return blocks_[layer]; }
  const NormWeightGradients& final_norm() const { return final_norm_; }

 private:
  GptConfig config_;
  ArenaLayout layout_;
  Arena<float> arena_;
  std::vector<BlockGradients> blocks_;
  NormWeightGradients final_norm_;
};

}  // namespace heed
