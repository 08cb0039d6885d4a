// Cells of a grid as whole passes: of a model that hooks or edits change, which see every row.
#pragma once

#include <map>
#include <vector>

#include "microscope/intervene/intervention.h"
#include "microscope/patch/patch_cells.h"

namespace heed {

class PatchPasses final : public CellRuns {
 public:
  // Runs the model on both prompts.
  PatchPasses(const Transformer& gpt, const PatchRequest& request,
              std::vector<std::int32_t> predicted);

  std::span<const float> clean_logits() const override { return clean_logits_.span(); }
  std::span<const float> corrupted_logits() const override { return corrupted_logits_.span(); }
  std::int64_t first_position(const PatchCell&) const override { return 0; }
  bool changes_nothing(const PatchCell&) const override { return false; }
  Tensor<float> run(std::span<const PatchCell> cells) override;

 private:
  Tensor<float> logits_of(const std::vector<std::int32_t>& tokens, Editor* editor) const;
  // The values of the point in a layer in the clean prompt, computed once.
  const ReplaceWith& clean_values(std::int64_t layer);
  Change change_of(const PatchCell& cell);

  const Transformer& gpt_;
  const PatchRequest& request_;
  std::vector<std::int32_t> predicted_;
  PatchGridKind kind_;
  std::map<std::int64_t, ReplaceWith> clean_;  // by layer
  Tensor<float> corrupted_pattern_;            // (1, H, T, T), for edges
  StackActivations activations_;
  Tensor<float> clean_logits_;
  Tensor<float> corrupted_logits_;
};

}  // namespace heed
