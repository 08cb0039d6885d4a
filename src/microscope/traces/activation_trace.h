// A probe that records the points, layers, heads and positions of a request, and copies nothing
// else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/trace.h"
#include "model/transformer.h"

namespace heed {

class ActivationTrace final : public Probe {
 public:
  // For `batch` sequences of `positions` positions, in one pass or step by step with a cache.
  // `more_bytes` of other memory count towards the budget. Throws what trace_prompt throws for its
  // request.
  ActivationTrace(const StackSpecification& config, const TraceRequest& request, std::int64_t batch,
                  std::int64_t positions, std::int64_t more_bytes = 0);

  bool wants(const Point& point) const override;
  void observe(const Point& point, View<const float> values) override;
  bool wants_gradient(const Point& point) const override;
  void observe_gradient(const Point& point, View<const float> values) override;

  // Moves the arrays out. They are cut to the positions that were observed, which are fewer if a
  // generation ended early.
  Trace take();

 private:
  struct Kept {
    Point point;
    bool of_heads = false;   // (B, T, H, …): heads can be selected
    bool of_planes = false;  // (B, H, T, S)
    std::int64_t seen = 0;   // positions so far
    // Of the point: the requested ones or, of keys and values, the key/value heads that they share.
    std::vector<std::int64_t> heads{};
    TracedArray array;
  };
  Kept make(const Point& point, bool gradient) const;
  std::int64_t elements(const Kept& kept) const;
  void keep(Kept& kept, View<const float> values) const;
  void keep_planes(Kept& kept, View<const float> values) const;
  Kept* find(std::vector<Kept>& kept, const Point& point);

  std::vector<std::int64_t> heads_;
  std::vector<std::int64_t> positions_;  // wanted, ascending
  std::int64_t batch_;
  std::int64_t all_positions_;
  const StackSpecification config_;
  std::vector<Kept> activations_;
  std::vector<Kept> gradients_;
};

// Whether any point of the request is a gradient.
bool asks_for_gradients(const TraceRequest& request);

// As in heed/trace.h; `editor` (or null) edits the pass. Throws Error{unsupported} for a gradient
// before a point where the editor does more than add.
Trace trace_prompt(const Transformer& gpt, std::span<const std::int32_t> tokens,
                   const TraceRequest& request, const GradientTarget& target = {},
                   Editor* editor = nullptr);

}  // namespace heed
