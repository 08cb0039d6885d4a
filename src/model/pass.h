// What the stages of one pass through the model share.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/operands.h"
#include "model/editor.h"
#include "model/probe.h"

namespace heed {

class KeyValueCache;

enum class DropoutSite : std::uint64_t { embedding, pattern, attention_out, feed_forward_out };

// Which elements a training pass drops: a pure function of (seed, pass, site, layer, element).
// Inactive outside training.
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
  KeyValueCache* cache = nullptr;   // remembers keys and values; null: attend within the batch
  // Sequences of different lengths, each with a cache of its own (B), in the place of the two.
  std::span<KeyValueCache* const> caches{};
  std::span<const std::int64_t> first_positions{};  // (B), what is in those caches
  DropoutPlan dropout{};
  Probe* probe = nullptr;
  Editor* editor = nullptr;         // changes what passes by
  std::int64_t first_sequence = 0;  // of a batch that is read in parts

  std::int64_t rows() const { return batch * positions; }  // N = B·T

  bool edits(const Site& site) const { return editor != nullptr && editor->edits(site); }
  EditPlace place(const Site& site) const {
    return {.site = site,
            .first_sequence = first_sequence,
            .first_position = first_position,
            .first_positions = first_positions};
  }
  void edit(const Site& site, View<float> values) const {
    if (edits(site)) editor->edit(place(site), values);
  }

  // Lets `values` be changed, then shows them; one branch when nobody is there.
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
  // Shows `values` to whoever looks; one branch when nobody does.
  void observe(Point point, std::int64_t layer, View<const float> values) const {
    if (probe != nullptr) [[unlikely]] {
      probe->observe({point, layer}, values);
    }
  }

  // The same for gradients, which are shown only where they are wanted.
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
