// Parameters of one pass through the model, shared by its stages.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "model/editor.h"
#include "model/probe.h"

namespace heed {

class KeyValueCache;

enum class DropoutSite : std::uint64_t { embedding, pattern, attention_out, feed_forward_out };

// Which elements a training pass drops: a pure function of (seed, pass, DropoutSite, layer,
// element). Inactive outside training.
struct DropoutPlan {
  bool active = false;
  std::uint64_t seed = 0;
  std::uint64_t pass = 0;  // counts batches over the whole training run

  kernels::Dropout at(DropoutSite site, std::int64_t layer, float rate) const;
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
  bool wants(Point point, std::int64_t layer) const {
    return probe != nullptr && probe->wants({point, layer});
  }
  bool edits(const Site& site) const { return editor != nullptr && editor->edits(site); }
  bool edits_head(const Site& site, std::int64_t head) const {
    return edits(site) && editor->edits_head(site, head);
  }
  EditPlace place(const Site& site) const {
    return {.site = site,
            .first_sequence = first_sequence,
            .first_position = first_position,
            .first_positions = first_positions};
  }
  void edit(const Site& site, View<float> values) const {
    if (edits(site)) editor->edit(place(site), values);
  }

  // Edits `values`, then observes them; one branch without an editor and a probe.
  void visit(Point point, std::int64_t layer, View<float> values) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      edit({point, layer}, values);
      observe(point, layer, values);
    }
  }
  // The same for rows (N, width), as (B, T, width).
  void visit_rows(Point point, std::int64_t layer, View<float> rows) const {
    if (editor != nullptr || probe != nullptr) [[unlikely]] {
      visit(point, layer, rows.reshape({batch, positions, rows.extent(1)}));
    }
  }
  // Shows `values` to the probe; one branch without one.
  void observe(Point point, std::int64_t layer, View<const float> values) const {
    if (probe != nullptr) [[unlikely]] {
      probe->observe({point, layer}, values);
    }
  }

  // The same for gradients, which are shown only where the probe wants them.
  bool wants_gradient(Point point, std::int64_t layer) const {
    return probe != nullptr && probe->wants_gradient({point, layer});
  }
  void observe_gradient(Point point, std::int64_t layer, View<const float> values) const {
    if (wants_gradient(point, layer)) [[unlikely]] {
      probe->observe_gradient({point, layer}, values);
    }
  }
  void observe_gradient_rows(Point point, std::int64_t layer, View<const float> rows) const {
    if (wants_gradient(point, layer)) [[unlikely]] {
      probe->observe_gradient({point, layer}, rows.reshape({batch, positions, rows.extent(1)}));
    }
  }
};

}  // namespace heed
