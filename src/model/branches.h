// Many versions of one sequence that each differ from it from some position on: what comes before
// is read once and shared. The ends of all branches are rows of one matrix, so that a linear layer
// reads its weights once for all of them; attention sees the stem's keys and values before the
// branch's first position and the branch's own from there on.
#pragma once

#include <vector>

#include "model/gpt.h"

namespace heed {

class Branches {
 public:
  // `stem` are the activations (1, T) of the sequence, every block kept; borrowed. Branch b differs
  // from position firsts[b] on.
  Branches(const Gpt& gpt, const GptActivations& stem, std::vector<std::int64_t> firsts);

  // Bytes that a row of the branches takes.
  static std::int64_t bytes_per_row(const GptConfig& config);

  std::int64_t count() const { return static_cast<std::int64_t>(firsts_.size()); }
  std::int64_t first(std::int64_t branch) const { return firsts_[branch]; }
  std::int64_t rows() const { return begins_.back(); }  // N, Σ T - first

  // The stream of a branch, (T - first, C): to be filled before run().
  View<float> stream(std::int64_t branch) const {
    return View<float>(stream_).slice(0, begins_[branch], begins_[branch + 1]);
  }

  // stream (R, C) += feed_forward(norm_2(stream)) of a layer, for any R <= N rows.
  void feed_forward(std::int64_t layer, View<float> stream);

  // Reads blocks [layer, L) and the final norm; the stream comes in as residual_pre of `layer`.
  // Returns the logits (count, V) of what follows the last position of each branch.
  Tensor<float> run(std::int64_t layer);

 private:
  void block(std::int64_t layer);
  void last_block(std::int64_t layer);
  void attend(std::int64_t layer, std::int64_t branch, View<const float> query, View<float> mixed);
  View<float> gather_last_rows();

  const Gpt& gpt_;
  const GptActivations& stem_;
  std::int64_t positions_;  // T
  std::vector<std::int64_t> firsts_;
  std::vector<std::int64_t> begins_;  // rows of branch b are [begins_[b], begins_[b + 1])
  Tensor<float> stream_storage_;
  View<float> stream_;             // (N, C)
  Tensor<float> norm_;             // (N, C)
  Tensor<float> query_key_value_;  // (N, 3A)
  Tensor<float> mixed_;            // (N, A)
  Tensor<float> branch_out_;       // (N, C)
  Tensor<float> neurons_;          // (N, F)
  Tensor<float> mean_;             // (N)
  Tensor<float> deviation_;        // (N)
  Tensor<float> log_sum_exp_;      // (H, T)
  Tensor<float> keys_;             // (T, A): of the branch that attends
  Tensor<float> values_;           // (T, A)
  Tensor<float> last_rows_;        // (count, C)
};

}  // namespace heed
