// A probe that keeps the part of a pass that a request names, and no more: slices are copied, the
// rest is not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/trace.h"
#include "model/gpt.h"

namespace heed {

class ActivationTrace final : public Probe {
 public:
  // For passes of `batch` sequences that come to `positions` in all: at once, or step by step with
  // a cache. `more_bytes` is what the work takes beside the trace, and counts towards the budget.
  // Throws what trace_prompt throws for its request.
  ActivationTrace(const GptConfig& config, const TraceRequest& request, std::int64_t batch,
                  std::int64_t positions, std::int64_t more_bytes = 0);

  bool wants(const Site& site) const override;
  void observe(const Site& site, View<const float> values) override;
  bool wants_gradient(const Site& site) const override;
  void observe_gradient(const Site& site, View<const float> values) override;

  // Hands the arrays over. Positions that were never seen, because a generation ended early, are
  // left out.
  Trace take();

 private:
  struct Kept {
    Site site;
    bool of_heads = false;   // (B, T, H, …): which heads matters
    bool of_planes = false;  // (B, H, T, S)
    std::int64_t seen = 0;   // positions so far
    TracedArray array;
  };
  Kept make(const Site& site, bool gradient) const;
  std::int64_t elements(const Kept& kept) const;
  void keep(Kept& kept, View<const float> values) const;
  void keep_planes(Kept& kept, View<const float> values) const;
  Kept* find(std::vector<Kept>& kept, const Site& site);

  std::vector<std::int64_t> heads_;
  std::vector<std::int64_t> positions_;  // wanted, ascending
  std::int64_t batch_;
  std::int64_t all_positions_;
  const GptConfig config_;
  std::vector<Kept> activations_;
  std::vector<Kept> gradients_;
};

// Whether any point of the request is a gradient.
bool asks_for_gradients(const TraceRequest& request);

// As in heed/trace.h; `editor` (null: nobody) changes the pass. Throws Error{unsupported} for a
// gradient before a point where the editor does more than add.
Trace trace_prompt(const Gpt& gpt, std::span<const std::int32_t> tokens,
                   const TraceRequest& request, const GradientTarget& target = {},
                   Editor* editor = nullptr);

// A training step of tokens (B, T) and their targets, without an update: what it sees on its way,
// and the gradients of its mean loss.
Trace trace_step(const Gpt& gpt, View<const std::int32_t> tokens, View<const std::int32_t> targets,
                 const TraceRequest& request);

}  // namespace heed
