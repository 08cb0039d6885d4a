// Activation patching and its first-order estimate. Requests and results are those of
// heed/patch.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heed/patch.h"
#include "model/architecture.h"
#include "model/attention_site.h"
#include "model/probe.h"
#include "model/transformer.h"

namespace heed {

// The metric of logits (V); `clean` holds the logits of the clean prompt.
double patch_metric(const PatchMetric& metric, std::span<const float> logits,
                    std::span<const float> clean);

// As in heed/patch.h. Layers and positions before a patch are computed once for all cells, and the
// cells of a layer share the forward passes after it.
PatchResult patch_sweep(const Transformer& model, const PatchRequest& request);

// What the columns of a grid are.
enum class PatchColumns {
  positions,
  heads,
  heads_by_position,  // head by head
  keys,               // of one head, whose queries are the rows
};

struct PatchGridKind {
  const char* name;  // TransformerLens's
  PointKind point;   // patched by a cell of a stack; for edges, changed by it
  PatchColumns columns;

  bool is_edge() const { return columns == PatchColumns::keys; }
};

const PatchGridKind& patch_grid_kind(PatchGrid grid);

// Where a request patches its model, and how many positions there are.
struct PatchedSite {
  AttentionSite site;
  std::int64_t queries = 0;
  std::int64_t keys = 0;

  // Positions of the point that a grid patches.
  std::int64_t positions(const PatchGridKind& kind) const {
    return kind.point == PointKind::key || kind.point == PointKind::value ? keys : queries;
  }
  // The point itself. Throws Error{invalid_argument} for a grid of a stack at cross-attention.
  Point point(const PatchGridKind& kind, std::int64_t layer) const;
};
// Throws Error{invalid_argument} for a site that the model does not have.
PatchedSite patched_site(const Architecture& architecture, const PatchRequest& request);

// The number of heads in a grid: of queries, or of keys and values.
std::int64_t patched_heads(const AttentionSpecification& attention, const PatchGridKind& kind);

// Their names: "H0", "H1", …; a key/value head is named after those that read it: "H0-3".
std::vector<std::string> patched_head_names(const AttentionSpecification& attention,
                                            const PatchGridKind& kind);

// The first-order estimate, from gradients, of a validated request: a cell's value is the metric
// of the corrupted prompt plus the effect from estimate_patching().
PatchResult estimate_sweep(const Transformer& model, const PatchRequest& request);

}  // namespace heed
