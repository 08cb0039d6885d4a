// Patching sweeps: two prompts of the same length differ in what decides the answer. The corrupted
// one is read again and again, each time with one thing put back as it was in the clean one; how
// much of the clean answer returns tells how much that thing matters (Vig et al. 2020; Meng et al.
// 2022).
//
//   heed::PatchRequest request{.clean = clean, .corrupted = corrupted};
//   request.metric = {.answer = mary, .wrong = john};
//   heed::PatchResult found = heed::patch_sweep(model, request);
//   found.recovered(layer, position);  // 0: as corrupted, 1: as clean
//
// Grids have the names of TransformerLens. Letters: L layers, H heads, T positions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"

namespace heed {

// What a cell of the grid puts back. Columns are positions, heads, or both, head by head.
enum class PatchGrid {
  residual_pre,              // (L, T)
  residual_mid,              // (L, T)
  attention_out,             // (L, T)
  feed_forward_out,          // (L, T)
  head_out,                  // (L, H): the head's mixed values, at all positions
  head_query,                // (L, H)
  head_key,                  // (L, H)
  head_value,                // (L, H)
  head_pattern,              // (L, H)
  head_out_by_position,      // (L, H·T)
  head_query_by_position,    // (L, H·T)
  head_key_by_position,      // (L, H·T)
  head_value_by_position,    // (L, H·T)
  head_pattern_by_position,  // (L, H·T): the pattern's row of the query at that position
  edge,                      // (T, T) of one head: the share that query t gives key s
  edge_cut,                  // (T, T): that share is zero, the others stay
  edge_cut_renormalised,     // (T, T): and the others are scaled so that they sum to one
};

const char* patch_grid_name(PatchGrid grid);  // "resid_pre", "attn_head_q_by_pos", "edge_cut", …
// Throws Error{invalid_argument} naming the nearest for an unknown name.
PatchGrid patch_grid_from_name(std::string_view name);
std::vector<std::string> patch_grid_names();

// A number of the logits after the last token.
struct PatchMetric {
  enum class Kind {
    logit_difference,  // logit of the answer - logit of the wrong one
    probability,       // of the answer
    kl,                // Σ clean · log(clean / patched), nats
  };
  Kind kind = Kind::logit_difference;
  std::int32_t answer = -1;  // kl needs none
  std::int32_t wrong = -1;   // only logit_difference needs one
};

enum class PatchMethod {
  exact,  // every cell is a pass of its own; what it does not change is computed once
  // (clean − corrupted) · ∂metric/∂corrupted, to first order: one pass over each prompt and one
  // back for all cells of all grids (attribution patching, Nanda 2023). Of logit differences alone;
  // not of edges.
  attribution,
};

struct PatchRequest {
  std::vector<std::int32_t> clean;
  std::vector<std::int32_t> corrupted;  // as many
  PatchGrid grid = PatchGrid::residual_pre;
  PatchMetric metric{};
  PatchMethod method = PatchMethod::exact;
  std::int64_t layer = -1;  // of the head whose edges are patched; only for edge grids
  std::int64_t head = -1;
  std::filesystem::path results{};    // cells are kept here as they come; empty: nowhere
  std::int64_t memory = 256LL << 20;  // bytes that cells computed together may take
  // Called before and after every part of the work, on the thread that called; false stops it.
  std::function<bool(std::int64_t done, std::int64_t cells)> progress{};
};

struct PatchResult {
  PatchGrid grid;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double clean = 0;                // the metric of the clean prompt
  double corrupted = 0;            // and of the corrupted one
  std::vector<double> values;      // (rows, columns); NaN for a key in the query's future
  std::int64_t cells = 0;          // that there are
  std::int64_t resumed_cells = 0;  // that were read from `results`

  double value(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  // 0 where a cell is as the corrupted prompt, 1 as the clean one; NaN where the two are the same.
  double recovered(std::int64_t row, std::int64_t column) const {
    return clean == corrupted ? std::numeric_limits<double>::quiet_NaN()
                              : (value(row, column) - corrupted) / (clean - corrupted);
  }
};

// Edges are cut in the corrupted prompt. With request.results, cells that the file holds for the
// same request are not computed again. Throws Error{invalid_argument}, before any work, for prompts
// of different lengths, a prompt longer than the context, tokens outside the vocabulary, a head
// that is not there and a method that does not know the grid or the metric; Error{conflict} for
// results of another request; Error{interrupted} when it was stopped, with all finished cells in
// the file.
PatchResult patch_sweep(const Model& model, const PatchRequest& request);

}  // namespace heed
