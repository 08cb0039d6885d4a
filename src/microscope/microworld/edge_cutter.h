// Cuts attention edges between ranges of positions, in every head of every layer.
#pragma once

#include <vector>

#include "microscope/microworld/marked_story.h"
#include "model/editor.h"

namespace heed {

// All edges from queries to keys, both ranges of positions.
struct EdgeBlock {
  TokenRange queries;
  TokenRange keys;
};

// The weights of cut edges are zero; those that are left in a row add up to 1 again. A row without
// a weight to cut stays as it is. Borrows `blocks`. For one sequence at a time.
class EdgeCutter final : public Editor {
 public:
  explicit EdgeCutter(const std::vector<EdgeBlock>& blocks) : blocks_(blocks) {}

  bool edits(const Point& point) const override { return point.kind == PointKind::pattern; }
  void edit(const EditedPoint&, View<float> values) override;

 private:
  const std::vector<EdgeBlock>& blocks_;
};

}  // namespace heed
