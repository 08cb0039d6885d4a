// A probe that records the points, layers, heads and positions of a request, and copies nothing
// else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/trace.h"
#include "microscope/traces/point_names.h"
#include "model/transformer.h"

namespace heed {

// What a trace is of: `batch` sequences of `positions` positions, in one pass or step by step with
// a cache; or a target, and a source of `sources` positions.
struct TracedLengths {
  std::int64_t batch = 1;
  std::int64_t positions = 0;
  std::int64_t sources = 0;
};

class ActivationTrace final : public Probe {
 public:
  // `more_bytes` of other memory count towards the budget. Throws what trace_texts throws for its
  // request.
  ActivationTrace(const Architecture& architecture, const TraceRequest& request,
                  const TracedLengths& lengths, std::int64_t more_bytes = 0);

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
  Kept make(const Point& point) const;
  std::int64_t rows(const Point& point) const;
  std::int64_t keys(const Point& plane) const;
  const std::vector<std::int64_t>& wanted(const Point& point) const {
    return has_source_rows(point) ? source_ : target_;
  }
  std::int64_t temporary_bytes(const Point& point) const;
  std::int64_t elements(const Kept& kept) const;
  void keep(Kept& kept, View<const float> values) const;
  void keep_planes(Kept& kept, View<const float> values) const;
  Kept* find(std::vector<Kept>& kept, const Point& point);

  const Architecture architecture_;
  TracedLengths lengths_;
  std::vector<std::int64_t> heads_;
  std::vector<std::int64_t> target_;  // wanted positions, ascending
  std::vector<std::int64_t> source_;
  std::vector<Kept> activations_;
  std::vector<Kept> gradients_;
};

// Whether any point of the request is a gradient.
bool asks_for_gradients(const TraceRequest& request);

// As in heed/trace.h; `editor` (or null) edits the pass. `tokens` of the result are those of the
// target. Throws Error{unsupported} for a gradient before a point where the editor does more than
// add.
Trace trace_texts(const Transformer& model, Texts texts, const TraceRequest& request,
                  const GradientTarget& target = {}, Editor* editor = nullptr);
// Of one text.
Trace trace_prompt(const Transformer& model, std::span<const std::int32_t> tokens,
                   const TraceRequest& request, const GradientTarget& target = {},
                   Editor* editor = nullptr);

}  // namespace heed
