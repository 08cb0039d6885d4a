// All parameters of a model in one arena, in a fixed order; gradients and optimizer moments are
// arenas of the same layout.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/operands.h"
#include "kernels/packed_weight.h"
#include "kernels/prepared_weight.h"
#include "model/architecture.h"
#include "model/block_weights.h"
#include "model/parameter_schedule.h"
#include "model/roles.h"
#include "tensor/arena.h"

namespace heed {

using NormWeights = kernels::NormParameters<float>;
using NormWeightGradients = kernels::NormGradients<float>;
using LinearWeights = kernels::LinearParameters<float>;
using LinearWeightGradients = kernels::LinearGradients<float>;

struct BlockParameters {
  NormWeights norm_1;
  LinearWeights query_key_value;   // (A + 2K, C): rows of query, then key, then value
  NormWeights query_norm;          // (D), or (A) of all heads; absent: none
  NormWeights key_norm;            // (D), or (K); absent: none
  LinearWeights projection;        // (C, A)
  NormWeights attention_out_norm;  // absent, like feed_forward_out_norm: no such norms
  NormWeights cross_norm;          // absent, like the next three: no cross-attention
  LinearWeights cross_query;       // (A, C)
  LinearWeights cross_key_value;   // (2K, C): rows of key, then value
  LinearWeights cross_output;      // (C, A)
  NormWeights norm_2;              // norm_1 where both branches read it
  LinearWeights gate;              // (F, C); absent: feed-forward is not gated
  LinearWeights up;                // (F, C)
  LinearWeights down;              // (C, F)
  NormWeights feed_forward_out_norm;
};

struct BlockGradients {
  View<float> position_bias;  // (H, 2P − 1), by distance in the pass; absent: no such bias
  NormWeightGradients norm_1;
  LinearWeightGradients query_key_value;
  NormWeightGradients query_norm;
  NormWeightGradients key_norm;
  LinearWeightGradients projection;
  NormWeightGradients attention_out_norm;
  NormWeightGradients cross_norm;
  LinearWeightGradients cross_query;
  LinearWeightGradients cross_key_value;
  LinearWeightGradients cross_output;
  NormWeightGradients norm_2;
  LinearWeightGradients gate;
  LinearWeightGradients up;
  LinearWeightGradients down;
  NormWeightGradients feed_forward_out_norm;
};

// Of one stack; views that the description does not ask for are absent.
struct StackParameters {
  View<const float> token_embedding;         // (V, C); not to be read where there are token_blocks
  const BlockTable* token_blocks = nullptr;  // what is read then; null: token_embedding
  View<const float> position_embedding;      // (P, C)
  View<const float> token_type_embedding;    // (types, C)
  View<const float> position_bias;           // (buckets, H)
  NormWeights embedding_norm;
  std::vector<BlockParameters> blocks;
  NormWeights final_norm;
  LinearWeights prediction;  // (C, C)
  NormWeights prediction_norm;
  LinearWeights unembedding;  // (V, C)
  StackSchedule schedule;     // of reading them
};

struct StackGradients {
  View<float> token_embedding;
  View<float> position_embedding;
  View<float> token_type_embedding;
  View<float> position_bias;
  NormWeightGradients embedding_norm;
  std::vector<BlockGradients> blocks;
  NormWeightGradients final_norm;
  LinearWeightGradients prediction;
  NormWeightGradients prediction_norm;
  LinearWeightGradients unembedding;
  StackSchedule schedule;  // of adding to them
};

// The order of the arena (weights are [out, in] in memory; tensors that the description does not
// ask for are absent):
//   token_embedding (V, C), position_embedding (P, C), token_type_embedding, position_bias
//   (buckets, H), embedding_norm (C), and for each block
//     norm_1 (C), query_key_value (A + 2K, C), query_norm (D or A), key_norm (D or K),
//     attention_output (C, A), attention_out_norm (C), cross_norm (C), cross_query (A, C),
//     cross_key_value (2K, C), cross_output (C, A), norm_2 (C), gate (F, C), up (F, C),
//     down (C, F), feed_forward_out_norm (C),
//   final_norm (C), prediction (C, C), prediction_norm (C), unembedding (V, C); each weight is
//   followed by its bias. Of two stacks the encoder comes first; an embedding that they share is
//   the encoder's.
std::vector<Parameter> parameters_of(const StackSpecification& stack);
std::vector<Parameter> parameters_of(const Architecture& architecture);

// Its entries are named by parameter_name().
ArenaLayout parameter_layout(const Architecture& architecture);

// Whether products multiply by it: a matrix of a linear layer, or an embedding that is an
// unembedding too.
bool is_multiplied(const Architecture& architecture, const ParameterId& id);

class Parameters {
 public:
  explicit Parameters(const Architecture& architecture,  // zeros
                      ArenaMemory memory = ArenaMemory::whole);
  // The arena has addresses for matrices in blocks, but no memory until they are restored.
  Parameters(const Architecture& architecture, BlockWeights blocks);

  // Told of every use from now on; null: nobody. Borrowed. Tables come in pieces of `piece_rows`
  // rows; 0: they are not divided.
  void set_schedule(ParameterSchedule* schedule, std::int64_t piece_rows = 0);
  const StackSchedule& schedule_of(const ParameterId& id) const;

  // GPT-2's initialisation: weights normal(0, initial_deviation), output projections of attention
  // and feed-forward scaled by 1/√(2L), gains one, biases zero. A pure function of description and
  // seed.
  void initialize(std::uint64_t seed);
  // Those at [begin, end) of the arena alone.
  void initialize(std::uint64_t seed, std::size_t begin, std::size_t end);

  const Architecture& architecture() const { return architecture_; }
  const ArenaLayout& layout() const { return layout_; }
  std::int64_t size() const { return layout_.size(); }  // of all()
  // These and tensor() restore what is in blocks.
  std::span<float> all();
  std::span<const float> all() const;
  Arena<float>& arena() { return arena_; }
  // In the order of the arena.
  const std::vector<Parameter>& list() const { return list_; }
  bool has(const ParameterId& id) const;
  View<float> tensor(const ParameterId& id);  // throws Error{not_found}
  View<const float> tensor(const ParameterId& id) const;
  // The same view of a parameter, or of a part of it, which is restored where it is in blocks:
  // weights that StackParameters have views of are not to be read before that.
  View<const float> restored(View<const float> parameter) const;
  double squared_norm() const;  // of all(), without restoring more than a matrix at a time

  bool are_in_blocks() const { return !blocks_.empty(); }  // some of them
  bool is_in_blocks(const ParameterId& id) const { return blocks_.has(id); }
  // Memory of parameters in f32, and of prepared weights.
  std::int64_t arena_bytes() const;
  std::int64_t prepared_bytes() const;

  // Of the only stack; of two, the decoder's where none is named.
  const StackParameters& stack(StackSite site = StackSite::only) const {
    return site == StackSite::encoder ? stacks_.front() : stacks_.back();
  }
  View<const float> token_embedding() const { return restored(stack().token_embedding); }  // (V, C)
  View<const float> position_embedding() const { return stack().position_embedding; }      // (P, C)
  const LinearWeights& unembedding() const { return stack().unembedding; }                 // (V, C)
  const BlockParameters& block(std::int64_t layer) const { return stack().blocks[layer]; }
  const NormWeights& final_norm() const { return stack().final_norm; }

  // Where passes read them. At first the processor, where they always can be looked at; place()
  // gives passes a copy on an accelerator, of all but matrices that are prepared or in blocks,
  // whose prepared weights go there when they are first used. After a change of either copy:
  // place() again, or fetch().
  void place(Device device);
  Device device() const { return placed_.device(); }
  void fetch();  // from the accelerator, if they are there
  // What stages of passes read, and an optimiser changes: those of stack(), or the copy.
  const StackParameters& placed(StackSite site = StackSite::only) const {
    return site == StackSite::encoder ? of_passes().front() : of_passes().back();
  }
  std::span<float> placed_all() { return placed_.present() ? placed_.all() : all(); }

  // The precision of every matrix product, forward and backward [f32].
  void set_precision(kernels::Precision precision);

  // Quantises the matrices of linear layers to bf16, int8 or int4 for inference; f32 returns to the
  // parameters themselves, and restores those in blocks for good. Parameters must not change while
  // prepared weights are in use. The format of matrices in blocks is that of most of them.
  void prepare(kernels::WeightFormat format);
  kernels::WeightFormat prepared_format() const { return prepared_format_; }

  // Keeps a copy of the matrices in the layout of f32 products, which speeds up prompts of more
  // than a few tokens, in packed_bytes() of additional memory. Does nothing where the matrices are
  // prepared in another format. Parameters must not change afterwards.
  void pack();
  bool is_packed() const { return !packed_.empty(); }
  static std::int64_t packed_bytes(const StackSpecification& config);

 private:
  // In the order of their use.
  static std::vector<LinearWeights*> linears_of(StackParameters& stack);
  std::vector<LinearWeights*> linears();
  void require_finite(kernels::WeightFormat format) const;
  void bind_stacks();
  const std::vector<StackParameters>& of_passes() const {
    return placed_.present() ? placed_stacks_ : stacks_;
  }
  bool has_place(std::size_t index) const;
  void copy_placed(Arena<float>& from, const ArenaLayout& from_layout, Arena<float>& to,
                   const ArenaLayout& to_layout) const;
  void link_prepared();
  void restore_all() const;

  Architecture architecture_;
  std::vector<Parameter> list_;
  ArenaLayout layout_;
  Arena<float> arena_;
  std::vector<StackParameters> stacks_;
  kernels::WeightFormat prepared_format_ = kernels::WeightFormat::f32;
  std::vector<kernels::PreparedWeight> prepared_;
  BlockWeights blocks_;  // or these
  std::vector<kernels::PackedWeight> packed_;
  // Of passes on an accelerator: absent where they are on the processor.
  ArenaLayout placed_layout_;
  Arena<float> placed_;
  std::vector<StackParameters> placed_stacks_;
};

class Gradients {
 public:
  explicit Gradients(const Architecture& architecture,  // zeros
                     ArenaMemory memory = ArenaMemory::whole, Device device = {});

  // As that of parameters, with pieces of as many rows.
  void set_schedule(ParameterSchedule* schedule, std::int64_t piece_rows = 0);

  const ArenaLayout& layout() const { return layout_; }
  std::span<float> all() { return arena_.all(); }
  std::span<const float> all() const { return arena_.all(); }
  Arena<float>& arena() { return arena_; }
  void clear();
  View<float> tensor(const ParameterId& id);  // throws Error{not_found}

  // Of the only stack; of two, the decoder's where none is named.
  const StackGradients& stack(StackSite site = StackSite::only) const {
    return site == StackSite::encoder ? stacks_.front() : stacks_.back();
  }
  View<float> position_embedding() { return stack().position_embedding; }  // absent: no table
  View<float> unembedding() { return stack().unembedding.weight; }
  View<float> unembedding_bias() { return stack().unembedding.bias; }  // absent: none
  const BlockGradients& block(std::int64_t layer) const { return stack().blocks[layer]; }
  const NormWeightGradients& final_norm() const { return stack().final_norm; }

 private:
  Architecture architecture_;
  std::vector<Parameter> list_;
  ArenaLayout layout_;
  Arena<float> arena_;
  std::vector<StackGradients> stacks_;
};

}  // namespace heed
