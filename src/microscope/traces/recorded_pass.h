// A pass over a batch whose every point can be read afterwards. What the pass computed stays where
// the pass wrote it, and is borrowed; the rest (norms, scores, pattern, neurons after the
// activation, the stream head by head) follows from it, and is computed when it is asked for, in
// the arithmetic of the pass.
#pragma once

#include <cstdint>
#include <vector>

#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

class RecordedPass {
 public:
  struct Batch {
    std::vector<std::int32_t> tokens;         // (B, T)
    std::vector<std::int32_t> token_types{};  // (B, T), as Pass::token_types; or none
    std::int64_t sequences = 1;               // B
  };

  // Runs the model; `observer` (or null) is told of its points. Borrows the model. Throws
  // Error{invalid_argument} for no tokens, unknown ids and more than the context.
  RecordedPass(const Transformer& gpt, Batch batch, Probe* observer = nullptr);
  RecordedPass(const RecordedPass&) = delete;
  RecordedPass& operator=(const RecordedPass&) = delete;

  std::int64_t batch() const { return batch_; }
  std::int64_t positions() const { return positions_; }
  std::int64_t bytes() const;

  // The values of a point, shaped as listed at PointKind, where they are in memory; else absent.
  View<float> stored(const Point& point) const;
  // The same of any other point that the model has, but scores and patterns.
  Tensor<float> computed(const Point& point) const;

  // A rectangle of one head's scores or pattern, (queries, keys).
  void attention_tile(const Point& point, const kernels::AttentionTile& tile,
                      View<float> out) const;

  Tensor<float> logits() const;  // (B, T, V)

 private:
  Pass pass(Probe* probe) const;
  View<const std::int32_t> token_view() const {
    return {input_.tokens.data(), {batch_, positions_}};
  }
  View<float> rows(View<float> all) const;
  View<float> stored_in_block(const Point& point) const;
  void replay(const Point& point, Probe& probe) const;
  kernels::AttentionInput<float> attention_input(std::int64_t layer) const;
  Tensor<float> neurons_post(std::int64_t layer) const;

  const Transformer& gpt_;
  Batch input_;
  std::int64_t batch_;
  std::int64_t positions_;
  StackActivations activations_;
  Tensor<float> branches_;  // (L, 2, N, C): what attention and feed-forward added to the stream
};

}  // namespace heed
