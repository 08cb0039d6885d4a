// Activation patching (Vig et al. 2020; Meng et al. 2022): two prompts of equal length differ in
// the tokens that decide the answer. For each cell of a grid, the model runs on the corrupted
// prompt with one activation replaced by its value in the clean run; the recovered share of the
// clean metric measures how much that activation matters.
//
//   heed::PatchRequest request{.clean = {.target = clean}, .corrupted = {.target = corrupted}};
//   request.metric = {.answer = mary, .wrong = john};
//   heed::PatchResult found = heed::patch_sweep(model, request);
//   found.recovered(layer, position);  // 0: as corrupted, 1: as clean
//
// Of a translator, the prompts are a source and a target each, and the cells are those of its
// encoder, of its decoder, or of the decoder's attention to the encoder.
//
// Grids have the names of TransformerLens. Notation: L layers, H heads, G key/value heads, T
// positions; in cross-attention, keys and values have positions of the source.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/heed.h"
#include "heed/texts.h"

namespace heed {

// The activation that a cell replaces. Columns are positions, heads, or both (head by head).
enum class PatchGrid {
  residual_pre,              // (L, T)
  residual_mid,              // (L, T)
  attention_out,             // (L, T)
  feed_forward_out,          // (L, T)
  head_out,                  // (L, H): the head's mixed values, at all positions
  head_query,                // (L, H)
  head_key,                  // (L, G)
  head_value,                // (L, G)
  head_pattern,              // (L, H)
  head_out_by_position,      // (L, H·T)
  head_query_by_position,    // (L, H·T)
  head_key_by_position,      // (L, G·T)
  head_value_by_position,    // (L, G·T)
  head_pattern_by_position,  // (L, H·T): the pattern's row of the query at that position
  edge,                      // (T, T) of one head: the weight from query t to key s
  edge_cut,                  // (T, T): sets that weight to zero and keeps the others
  edge_cut_renormalised,     // (T, T): and renormalises the others to sum to one
};

const char* patch_grid_name(PatchGrid grid);  // "resid_pre", "attn_head_q_by_pos", "edge_cut", …
// Throws Error{invalid_argument}, with the nearest name, for an unknown one.
PatchGrid patch_grid_from_name(std::string_view name);
std::vector<std::string> patch_grid_names();

// The heads that columns of such a grid name: "H0", "H1", …; of keys and values that several heads
// share, those that read them: "H0-3".
// Of a translator, of PatchRequest::site.
std::vector<std::string> patch_head_names(const Model& model, PatchGrid grid,
                                          std::string_view site = {});

// A metric of the logits after the last token.
struct PatchMetric {
  enum class Kind {
    logit_difference,  // logit of the answer - logit of the wrong answer
    probability,       // of the answer
    kl,                // Σ clean · log(clean / patched), nats
    own,               // a function of the caller's
  };
  Kind kind = Kind::logit_difference;
  std::int32_t answer = -1;  // kl and own need none
  std::int32_t wrong = -1;   // only logit_difference needs one
  // Of logits (V), first those of the clean prompt, then of the corrupted one, then of each cell
  // that differs from it, on the calling thread. An exception ends the sweep.
  std::function<double(std::span<const float> logits)> own{};
};

enum class PatchMethod {
  exact,  // one forward pass per cell; unchanged layers and positions are computed once
  // attribution patching (Nanda 2023): the first-order estimate (clean − corrupted) ·
  // ∂metric/∂corrupted, from one forward pass over each prompt and one backward pass for all cells.
  // For logit differences only; not for edges.
  attribution,
};

struct PatchRequest {
  // The metric is that of the token after the last of the target.
  Texts clean;
  Texts corrupted;     // of the same lengths
  std::string site{};  // of a translator: "encoder" (or empty), "decoder" or "cross"
  PatchGrid grid = PatchGrid::residual_pre;
  PatchMetric metric{};
  PatchMethod method = PatchMethod::exact;
  std::int64_t layer = -1;  // layer and head of edge grids
  std::int64_t head = -1;
  std::filesystem::path results{};    // file for finished cells, to resume from; empty: none
  std::int64_t memory = 256LL << 20;  // bytes for cells computed together
  // Called before and after every batch of cells, on the calling thread; return false to stop.
  std::function<bool(std::int64_t done, std::int64_t cells)> progress{};
};

struct PatchResult {
  PatchGrid grid;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double clean = 0;                // the metric for the clean prompt
  double corrupted = 0;            // and for the corrupted one
  std::vector<double> values;      // (rows, columns); NaN for keys after the query
  std::int64_t cells = 0;          // in the grid
  std::int64_t resumed_cells = 0;  // of them, read from `results`

  double value(std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
  // 0: as corrupted, 1: as clean; NaN if both prompts have the same metric.
  double recovered(std::int64_t row, std::int64_t column) const {
    return clean == corrupted ? std::numeric_limits<double>::quiet_NaN()
                              : (value(row, column) - corrupted) / (clean - corrupted);
  }
};

// Edges are cut in the corrupted prompt. With request.results, finished cells of the same request
// are read from the file instead of computed. Throws Error{invalid_argument}, before running the
// model, for prompts of different lengths, prompts longer than the context, tokens outside the
// vocabulary, a head or site that does not exist, a method that does not support the grid or
// the metric, and request.results with a metric of the caller's, which no file can name;
// Error{conflict} for results of another request; Error{interrupted} if stopped, with all finished
// cells in the file.
PatchResult patch_sweep(const Model& model, const PatchRequest& request);

}  // namespace heed
