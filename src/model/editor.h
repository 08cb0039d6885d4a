// Whoever changes a pass: at any point, before the point is observed and before anything downstream
// reads it, as a hook of TransformerLens that returns a replacement.
#pragma once

#include <cstdint>
#include <span>

#include "model/probe.h"

namespace heed {

// Where the values given to an editor stand.
struct EditPlace {
  Site site;
  std::int64_t first_sequence = 0;                  // of the batch: values[0]
  std::int64_t first_position = 0;                  // of the sequence: values[:, 0]
  std::span<const std::int64_t> first_positions{};  // by sequence of the batch, where they differ
  std::int64_t head = -1;                           // scores and pattern: whose plane it is

  // The position in its sequence of values[b, t]; of scores and pattern, of the query t.
  std::int64_t position(std::int64_t b, std::int64_t t) const {
    return (first_positions.empty()
                ? first_position
                : first_positions[static_cast<std::size_t>(first_sequence + b)]) +
           t;
  }
};

// An editor decides by place alone: it may be given the values of the same place twice, once for
// the pass and once for a probe that looks at a point which the pass does not keep.
class Editor {
 public:
  virtual ~Editor() = default;

  // Asked at every point of every pass.
  virtual bool edits(const Site& site) const = 0;

  // Asked at scores and pattern, where edits() is true: only these heads leave the fused kernel.
  virtual bool edits_head(const Site& site, std::int64_t head) const {
    static_cast<void>(head);
    return edits(site);
  }

  // Whether all that it does there is to add what does not depend on the pass, so that a gradient
  // by the values before is the one by those after.
  virtual bool only_adds(const Site& site) const {
    static_cast<void>(site);
    return false;
  }

  // Changes `values` in place. They are shaped as listed at Point and may be strided, save for
  // scores and pattern, which come one head of one sequence at a time, (1, 1, T, S), from several
  // threads at once where sequences have caches of their own. A pass reads scores, then makes the
  // pattern of them, then edits that; rows of an edited pattern need not sum to one.
  virtual void edit(const EditPlace& place, View<float> values) = 0;
};

}  // namespace heed
