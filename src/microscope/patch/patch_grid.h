// The patched point and the columns of each grid.
#pragma once

#include <string>
#include <vector>

#include "heed/patch.h"
#include "model/architecture.h"
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
  PointKind point;   // patched by a cell; for edges, changed by it
  PatchColumns columns;

  bool is_edge() const { return columns == PatchColumns::keys; }
};

const PatchGridKind& patch_grid_kind(PatchGrid grid);

// The heads that cells of such a grid name: of queries, or of keys and values.
std::int64_t patched_heads(const StackSpecification& config, const PatchGridKind& kind);

// Their names: "H0", "H1", …; a key/value head is named after those that read it: "H0-3".
std::vector<std::string> patched_head_names(const StackSpecification& config,
                                            const PatchGridKind& kind);

}  // namespace heed
