// A pass over one text that stays: whatever a probe would have seen of it can be seen again, at any
// time and as often as wanted, without computing the pass once more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/gpt.h"
#include "tensor/tensor.h"

namespace heed {

class KeptPass {
 public:
  // Memory of passes that are gone, for the next one of the same size: new memory costs a good part
  // of the time of a pass.
  struct Buffers {
    std::unique_ptr<GptActivations> activations;
    Tensor<float> branches;  // (L, 2, T, C): what attention and feed-forward added to the stream
  };

  // Reads `tokens` as one sequence, changed by `editor` (null: nobody). The model is borrowed.
  // Throws Error{invalid_argument} for no tokens, unknown ids and more than the context.
  KeptPass(const Gpt& gpt, std::vector<std::int32_t> tokens, std::shared_ptr<Editor> editor = {},
           Buffers reused = {});
  KeptPass(const KeptPass&) = delete;
  KeptPass& operator=(const KeptPass&) = delete;

  // Bytes that a pass over so many positions keeps.
  static std::int64_t bytes_needed(const GptConfig& config, std::int64_t positions);
  std::int64_t bytes() const { return bytes_needed(gpt_.config(), positions()); }

  const Gpt& gpt() const { return gpt_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }
  std::int64_t positions() const { return static_cast<std::int64_t>(tokens_.size()); }
  const GptActivations& activations() const { return *buffers_.activations; }
  View<const float> final_norm() const { return activations().final_norm(); }  // (T, C)
  // (T, C): what a half of a block added to the stream.
  View<const float> attention_out(std::int64_t layer) const { return branch(layer, 0); }
  View<const float> feed_forward_out(std::int64_t layer) const { return branch(layer, 1); }

  // Everything that the pass showed, to a probe that sees it for the first time. Points that a pass
  // does not hold (scores, pattern, normalised rows, …) are computed where the probe wants them.
  // Where an intervention changes resid_pre of a block, resid_post of the one before shows the
  // change too: they are one place in memory.
  void replay(Probe& probe) const;

  // The same of one layer alone.
  void replay_layer(std::int64_t layer, Probe& probe) const;

  // Logits (end - begin, V) of what follows positions [begin, end).
  Tensor<float> logits(std::int64_t begin, std::int64_t end) const;

  // Whether an editor changed scores or pattern of a head, so that they cannot be computed from
  // query, key and log-sum-exp alone.
  bool edits_pattern(std::int64_t layer, std::int64_t head) const;

  // Whether an editor changed this point; and there, this head.
  bool edits(const Site& site) const { return editor_ != nullptr && editor_->edits(site); }
  bool edits_head(const Site& site, std::int64_t head) const {
    return edits(site) && editor_->edits_head(site, head);
  }

  // One head's pattern or its scores, (T, T), as the pass used them.
  Tensor<float> plane(const Site& site, std::int64_t head) const;

  // What attention of a layer read.
  kernels::AttentionInput<float> attention_input(std::int64_t layer) const;

  // Hands the memory over; nothing else may be called afterwards.
  Buffers take_buffers() { return std::move(buffers_); }

 private:
  Pass pass(Probe* probe) const;
  View<const std::int32_t> token_view() const { return {tokens_.data(), {1, positions()}}; }
  View<const float> branch(std::int64_t layer, std::int64_t half) const;

  const Gpt& gpt_;
  std::vector<std::int32_t> tokens_;
  std::shared_ptr<Editor> editor_;
  Buffers buffers_;
};

}  // namespace heed
