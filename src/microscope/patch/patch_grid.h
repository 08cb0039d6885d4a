// What the grids of patching sweeps patch, and what their columns are.
#pragma once

#include "heed/patch.h"
#include "model/probe.h"

namespace heed {

enum class PatchColumns {
  positions,
  heads,
  heads_by_position,  // head by head
  keys,               // of one head, whose queries are the rows
};

struct PatchGridKind {
  const char* name;  // TransformerLens's
  Point point;       // what a cell puts back, or of edges what it changes
  PatchColumns columns;

  bool is_edge() const { return columns == PatchColumns::keys; }
  bool is_by_head() const {
    return columns == PatchColumns::heads || columns == PatchColumns::heads_by_position;
  }
};

const PatchGridKind& patch_grid_kind(PatchGrid grid);

}  // namespace heed
