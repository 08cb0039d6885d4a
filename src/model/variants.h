// Variants of one sequence, the base, that each differ from it from some position on, and from some
// layer on; what comes before is computed once and shared. The rows of all variants form one
// matrix, so that a linear layer reads its weights once for all of them. Attention uses the base's
// keys and values before a variant's first position and the variant's own from there on.
#pragma once

#include <vector>

#include "model/transformer.h"

namespace heed {

class Variants {
 public:
  // `base`: activations (1, T) of the sequence, with every block kept; borrowed. Variant v differs
  // from position firsts[v] on. Throws Error{invalid_argument} for other activations and for a
  // position outside the sequence.
  Variants(const Transformer& model, const StackActivations& base,
           std::vector<std::int64_t> firsts);

  // Memory of one row of the matrix, but for the neurons, of which few rows are there at a time.
  static std::int64_t bytes_per_row(const StackSpecification& config);

  std::int64_t count() const { return static_cast<std::int64_t>(firsts_.size()); }
  std::int64_t first(std::int64_t variant) const { return firsts_[variant]; }
  std::int64_t rows() const { return begins_.back(); }  // N, Σ T - first

  // The residual stream of a variant, (T - first, C): to be filled before the first block that the
  // variant runs.
  View<float> stream(std::int64_t variant) const {
    return View<float>(stream_).slice(0, begins_[variant], begins_[variant + 1]);
  }

  // stream (R, C) += feed_forward(norm_2(read)) of a layer, for any R <= N rows; `read` is the
  // stream itself or, where the residual is parallel, the stream before the block.
  void add_feed_forward(std::int64_t layer, View<const float> read, View<float> stream);

  // Runs a block for the first `active` variants, whose streams are its residual_pre: others enter
  // at a later layer. Of the last block only what the last positions read is computed.
  void run_block(std::int64_t layer, std::int64_t active);
  // The logits at the last position of each variant, once all blocks have run: (count, V), or
  // (count, tokens) of some tokens alone.
  Tensor<float> logits(std::span<const std::int32_t> tokens = {});
  // Both, for variants that all enter at `layer`: (count, V).
  Tensor<float> run(std::int64_t layer);

 private:
  LayerPass layer_pass(std::int64_t layer, const RotaryRows& rotary) const {
    return model_.layer_pass(layer, pass_, rotary);
  }
  void norm_stream(View<const float> stream, const NormWeights& weights, View<float> out);
  AttentionActivations attention_rows(std::int64_t begin, std::int64_t end);
  enum class Queries { of_all_positions, of_last_positions };
  void project_heads(std::int64_t layer, std::int64_t active, Queries queries);
  void project_last_queries(const LayerPass& at, std::int64_t active);
  void block(std::int64_t layer, std::int64_t active);
  void last_block(std::int64_t layer, std::int64_t active);
  std::int64_t attending_end(std::int64_t begin, std::int64_t active) const;
  Heads<const float> heads_of_variants(std::int64_t layer, std::int64_t begin, std::int64_t end);
  void attend(std::int64_t layer, std::int64_t begin, std::int64_t end, std::int64_t first_query,
              View<float> mixed);
  void attend_all(std::int64_t layer, std::int64_t active, std::int64_t first_query,
                  View<float> mixed);
  View<float> gather_last_rows(std::int64_t begin, std::int64_t end);
  std::int64_t rows_of(std::int64_t variants) const {
    return begins_[static_cast<std::size_t>(variants)];
  }

  const Transformer& model_;
  const StackActivations& base_;
  std::int64_t positions_;  // T
  Pass pass_;               // every row is computed as one of the base's pass
  std::vector<std::int64_t> firsts_;
  std::vector<std::int64_t> begins_;         // rows of variant v are [begins_[v], begins_[v + 1])
  std::vector<std::int64_t> row_positions_;  // (N)
  RotaryRows rotary_;                        // of the first rotary_rows_ rows
  std::int64_t rotary_rows_ = -1;
  std::int64_t ended_ = 0;  // variants whose last rows the last block left in last_rows_
  Tensor<float> stream_storage_;
  View<float> stream_;             // (N, C)
  Tensor<float> norm_;             // (N, C)
  Tensor<float> query_key_value_;  // (N, A + 2K)
  Tensor<float> positioned_;       // (N, A + K)
  Tensor<float> query_deviation_;  // (N, H)
  Tensor<float> key_deviation_;    // (N, G)
  Tensor<float> mixed_;            // (N, A)
  Tensor<float> branch_out_;       // (N, C)
  Tensor<float> neurons_;          // (R, F), of R rows at a time: before the activation
  Tensor<float> linear_;           // (R, F)
  Tensor<float> activated_;        // (R, F)
  Tensor<float> mean_;             // (N)
  Tensor<float> deviation_;        // (N)
  // of the G variants that attend together
  Tensor<float> queries_;      // (G·T, A)
  Tensor<float> keys_;         // (G·T, K)
  Tensor<float> values_;       // (G·T, K)
  Tensor<float> attended_;     // (G·T, A)
  Tensor<float> log_sum_exp_;  // (G, H, T)
  Tensor<float> last_rows_;    // (count, C)
  Tensor<float> last_read_;    // (count, C): before the last block, where the residual is parallel
};

}  // namespace heed
