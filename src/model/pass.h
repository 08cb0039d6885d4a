// Parameters of one pass through the model, shared by its stages.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "model/editor.h"
#include "model/probe.h"

namespace heed {

class KeyValueCache;

enum class DropoutPoint : std::uint64_t { embedding, pattern, attention_out, feed_forward_out };

// Which elements a training pass drops: a pure function of (seed, pass, DropoutPoint, layer,
// element). Inactive outside training.
struct DropoutPlan {
  bool active = false;
  std::uint64_t seed = 0;
  std::uint64_t pass = 0;  // counts batches over the whole training run

  kernels::Dropout at(DropoutPoint point, std::int64_t layer, float rate) const;
};

struct Pass {
  std::int64_t batch = 1;           // B
  std::int64_t positions = 1;       // T
  std::int64_t first_position = 0;  // of tokens[:, 0]; with a cache, the positions already in it
  KeyValueCache* cache = nullptr;   // stores keys and values; null: attend within the batch
  // For sequences of different lengths, instead of `cache` and `first_position`: a cache each (B),
  // and the positions already in it (B).
  std::span<KeyValueCache* const> caches{};
  std::span<const std::int64_t> first_positions{};
  DropoutPlan dropout{};
  Probe* probe = nullptr;
  Editor* editor = nullptr;
  std::int64_t first_sequence = 0;  // of a batch that is computed in parts

  std::int64_t rows() const { return batch * positions; }  // N = B·T

  // Values that are computed for a probe alone are computed only where it wants them.
  bool wants(PointKind kind, std::int64_t layer) const {
    return probe != nullptr && probe->wants({kind, layer});
  }
  bool edits(const Point& point) const { return editor != nullptr && editor->edits(point); }
  bool edits_head(const Point& point, std::int64_t head) const {
    return edits(point) && editor->edits_head(point, head);
  }
  EditedPoint edited_point(const Point& point) const {
    return {.point = point,
            .first_sequence = first_sequence,
            .first_position = first_position,
            .first_positions = first_positions};
  }
  void edit(const Point& point, View<float> values) const {
    if (edits(point)) editor->edit(edited_point(point), values);
  }

  // Edits `values`, then observes them; a null check if there are none.
  void visit(PointKind kind, std::int64_t layer, View<float> values) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      edit({kind, layer}, values);
      observe(kind, layer, values);
    }
  }
  // The same for rows (N, width), as (B, T, width).
  void visit_rows(PointKind kind, std::int64_t layer, View<float> rows) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      visit(kind, layer, rows.reshape({batch, positions, rows.extent(1)}));
    }
  }
  // Shows `values` to the probe; a null check if there is none.
  void observe(PointKind kind, std::int64_t layer, View<const float> values) const {
    if (probe != nullptr) [[unlikely]] {
      probe->observe({kind, layer}, values);
    }
  }

  // The same for gradients, which are shown only where the probe wants them.
  bool wants_gradient(PointKind kind, std::int64_t layer) const {
    return probe != nullptr && probe->wants_gradient({kind, layer});
  }
  void observe_gradient(PointKind kind, std::int64_t layer, View<const float> values) const {
    if (wants_gradient(kind, layer)) [[unlikely]] {
      probe->observe_gradient({kind, layer}, values);
    }
  }
  void observe_gradient_rows(PointKind kind, std::int64_t layer, View<const float> rows) const {
    if (wants_gradient(kind, layer)) [[unlikely]] {
      probe->observe_gradient({kind, layer}, rows.reshape({batch, positions, rows.extent(1)}));
    }
  }
};

}  // namespace heed
