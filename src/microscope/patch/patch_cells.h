// Computes the patched logits of the cells of a grid.
#pragma once

#include <map>
#include <vector>

#include "microscope/intervene/intervention.h"
#include "microscope/patch/patch.h"
#include "microscope/traces/recorded_pass.h"
#include "model/variants.h"

namespace heed {

struct PatchCell {
  std::int64_t row = 0;  // of the grid
  std::int64_t column = 0;
  std::int64_t layer = 0;      // of the patch
  std::int64_t head = -1;      // of keys and values where they are patched; −1: none
  std::int64_t position = -1;  // −1: all
  std::int64_t key = -1;       // of an edge
};

// All cells of a grid, grouped by layer.
std::vector<PatchCell> patch_cells(const Architecture& architecture, const PatchRequest& request);

// Computes the logits of cells.
class CellRuns {
 public:
  virtual ~CellRuns() = default;

  // (P), at the last position.
  virtual std::span<const float> clean_logits() const = 0;
  virtual std::span<const float> corrupted_logits() const = 0;

  // The first position that a cell changes.
  virtual std::int64_t first_position(const PatchCell& cell) const = 0;
  // Whether a cell patches what is the same in both prompts, or what no prediction reads.
  virtual bool changes_nothing(const PatchCell& cell) const = 0;

  // How many rows of cells run() may compute together in so many bytes.
  virtual std::int64_t rows_in(std::int64_t bytes) const = 0;

  // Logits (cells, P) of cells in the order of their layers.
  virtual Tensor<float> run(std::span<const PatchCell> cells) = 0;
};

// Computes only what cells change.
class PatchRuns final : public CellRuns {
 public:
  // Runs the model on both prompts and keeps all activations. Logits are those of the `predicted`
  // tokens P, or, where there are none, of the whole vocabulary.
  PatchRuns(const Transformer& model, const PatchRequest& request,
            std::vector<std::int32_t> predicted = {});

  std::span<const float> clean_logits() const override { return clean_logits_.span(); }
  std::span<const float> corrupted_logits() const override { return corrupted_logits_.span(); }
  std::int64_t first_position(const PatchCell& cell) const override;
  bool changes_nothing(const PatchCell& cell) const override;
  std::int64_t rows_in(std::int64_t bytes) const override;
  Tensor<float> run(std::span<const PatchCell> cells) override;

 private:
  struct Changed;  // rows, or heads, [begin, end)
  Changed changed_rows(const PatchCell& cell) const;
  std::int64_t entered_layer(const PatchCell& cell) const;
  void enter(std::span<const PatchCell> cells, std::int64_t first_variant,
             Variants& variants) const;
  void fill_streams(std::span<const PatchCell> cells, std::int64_t first_variant,
                    const Variants& variants) const;
  Changed changed_heads(const PatchCell& cell) const;
  Tensor<float> patched_middles(std::span<const PatchCell> cells,
                                std::span<const std::int64_t> positions) const;
  void mix(const PatchCell& cell, std::int64_t head, View<float> mixed) const;
  void mix_edge(const PatchCell& cell, View<float> mixed) const;

  const Transformer& model_;
  std::vector<std::int32_t> predicted_;
  PatchGrid grid_;
  PatchGridKind kind_;
  std::int64_t first_difference_;
  StackActivations clean_;
  StackActivations corrupted_;
  Tensor<float> clean_logits_;
  Tensor<float> corrupted_logits_;
};

// Computes cells by whole passes: of a model that hooks or edits change, which see every row, of
// one that norms the queries and keys of all heads together, and of a translator.
class PatchPasses final : public CellRuns {
 public:
  // Runs the model on both prompts.
  PatchPasses(const Transformer& model, const PatchRequest& request,
              std::vector<std::int32_t> predicted);

  std::span<const float> clean_logits() const override { return clean_logits_.span(); }
  std::span<const float> corrupted_logits() const override { return corrupted_logits_.span(); }
  std::int64_t first_position(const PatchCell&) const override { return 0; }
  bool changes_nothing(const PatchCell&) const override { return false; }
  std::int64_t rows_in(std::int64_t) const override { return 1; }  // a cell at a time
  Tensor<float> run(std::span<const PatchCell> cells) override;

 private:
  Tensor<float> logits_of(const Texts& texts, Editor* editor);
  // The values of the point in a layer in the clean prompt, computed once.
  const ReplaceWith& clean_values(std::int64_t layer);
  Change change_of(const PatchCell& cell);

  const Transformer& model_;
  const PatchRequest& request_;
  std::vector<std::int32_t> predicted_;
  PatchGridKind kind_;
  PatchedSite site_;
  std::map<std::int64_t, ReplaceWith> clean_;  // by layer
  Tensor<float> corrupted_pattern_;            // (1, H, T, S), for edges
  RecordedBuffers buffers_;
  Tensor<float> clean_logits_;
  Tensor<float> corrupted_logits_;
};

}  // namespace heed
