// A recorded pass over one text: any probe can observe it later, any number of times, without
// running the model again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "model/editor.h"
#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

class KeptPass {
 public:
  // Memory of an earlier pass, reused for one of the same size: allocating and touching new memory
  // takes a good part of the time of a pass.
  struct Buffers {
    std::unique_ptr<StackActivations> activations;
    Tensor<float> branches;  // (L, 2, T, C): what attention and feed-forward added to the stream
  };

  // Runs the model on `tokens` as one sequence, edited by `editor` (or null). Borrows the model.
  // Throws Error{invalid_argument} for no tokens, unknown ids and more than the context, and
  // Error{interrupted} when stopped.
  KeptPass(const Transformer& gpt, std::vector<std::int32_t> tokens,
           std::shared_ptr<Editor> editor = {}, Buffers reused = {}, StopFlag stop = nullptr);
  KeptPass(const KeptPass&) = delete;
  KeptPass& operator=(const KeptPass&) = delete;

  // Bytes of a recorded pass over `positions` positions.
  static std::int64_t bytes_needed(const StackSpecification& config, std::int64_t positions);
  std::int64_t bytes() const { return bytes_needed(gpt_.specification(), positions()); }

  const Transformer& gpt() const { return gpt_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  std::int64_t positions() const { return static_cast<std::int64_t>(tokens_.size()); }
  const StackActivations& activations() const { return *buffers_.activations; }
  View<const float> final_norm() const { return activations().final_norm(); }  // (T, C)
  // (T, C): what a half of a block added to the stream.
  View<const float> attention_out(std::int64_t layer) const { return branch(layer, 0); }
  View<const float> feed_forward_out(std::int64_t layer) const { return branch(layer, 1); }

  // Shows a probe every point of the pass. Points that are not stored (scores, pattern, normalised
  // rows, …) are computed if the probe wants them. If an intervention changes resid_pre of a block,
  // resid_post of the previous block is changed too: they share memory.
  void replay(Probe& probe) const;

  // The same for one layer.
  void replay_layer(std::int64_t layer, Probe& probe) const;

  // Logits (end - begin, V) at positions [begin, end).
  Tensor<float> logits(std::int64_t begin, std::int64_t end) const;

  // Whether an editor changed scores or pattern of a head, which then cannot be computed from
  // query, key and log-sum-exp.
  bool edits_pattern(std::int64_t layer, std::int64_t head) const;

  // Whether an editor changed this point, or this head of it.
  bool edits(const Point& point) const {
    return editor_.get() != nullptr && editor_.get()->edits(point);
  }
  bool edits_head(const Point& point, std::int64_t head) const {
    return edits(point) && editor_.get()->edits_head(point, head);
  }

  // One head's pattern or scores, (T, T), as used in the pass.
  Tensor<float> plane(const Point& point, std::int64_t head) const;

  // The operands of a layer's attention.
  kernels::AttentionInput<float> attention_input(std::int64_t layer) const;

  // Moves the memory out; no other function may be called afterwards.
  Buffers take_buffers() { return std::move(buffers_); }

 private:
  Pass pass(Probe* probe) const;
  View<const std::int32_t> token_view() const { return {tokens_.data(), {1, positions()}}; }
  View<const float> branch(std::int64_t layer, std::int64_t half) const;

  const Transformer& gpt_;
  std::vector<std::int32_t> tokens_;
  std::shared_ptr<Editor> given_;
  EditorOfPass editor_;  // of the model and the one that was given
  Buffers buffers_;
};

}  // namespace heed
