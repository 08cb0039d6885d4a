#include "microscope/patch/patch_passes.h"

#include <algorithm>

namespace heed {

PatchPasses::PatchPasses(const Transformer& gpt, const PatchRequest& request,
                         std::vector<std::int32_t> predicted)
    : gpt_(gpt),
      request_(request),
      predicted_(std::move(predicted)),
      kind_(patch_grid_kind(request.grid)),
      activations_(gpt.specification(), 1, std::ssize(request.clean), Keep::one_block),
      clean_logits_(logits_of(request.clean, nullptr)),
      corrupted_logits_(logits_of(request.corrupted, nullptr)) {
  if (request.grid == PatchGrid::edge) {
    corrupted_pattern_ =
        values_at(gpt, {kind_.point, request.layer}, {.target = request.corrupted});
  }
}

Tensor<float> PatchPasses::logits_of(const std::vector<std::int32_t>& tokens,
                                     Editor* editor) const {
  const std::int64_t positions = std::ssize(tokens);
  gpt_.forward({tokens.data(), {1, positions}}, {.sequences = {1, positions}, .editor = editor},
               activations_);
  return gpt_.project_tokens(activations_.final_norm().slice(0, positions - 1, positions),
                             predicted_, positions);
}

const ReplaceWith& PatchPasses::clean_values(std::int64_t layer) {
  const auto found = clean_.find(layer);
  if (found != clean_.end()) return found->second;
  return clean_.emplace(layer, values_at(gpt_, {kind_.point, layer}, {.target = request_.clean}))
      .first->second;
}

Change PatchPasses::change_of(const PatchCell& cell) {
  if (request_.grid == PatchGrid::edge) {
    Tensor<float> pattern(corrupted_pattern_.shape());
    std::ranges::copy(corrupted_pattern_.span(), pattern.data());
    pattern.view()(0, cell.head, cell.position, cell.key) =
        clean_values(cell.layer).values->view()(0, cell.head, cell.position, cell.key);
    return ReplaceWith(std::move(pattern));
  }
  if (kind_.is_edge()) {
    return CutEdges{.edges = {{cell.position, cell.key}},
                    .rest = request_.grid == PatchGrid::edge_cut_renormalised
                                ? CutEdges::Rest::renormalised
                                : CutEdges::Rest::kept};
  }
  return clean_values(cell.layer);
}

Tensor<float> PatchPasses::run(std::span<const PatchCell> cells) {
  Tensor<float> logits(Shape{std::ssize(cells), clean_logits_.size()});
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const PatchCell& cell = cells[i];
    Selection where;
    if (cell.head >= 0) where.heads = {cell.head};
    if (cell.position >= 0) where.first_position = where.last_position = cell.position;
    Interventions patch(gpt_.specification(),
                        {{{kind_.point, cell.layer}, std::move(where), change_of(cell)}});
    const Tensor<float> patched = logits_of(request_.corrupted, &patch);
    std::ranges::copy(patched.span(), logits.view()[static_cast<std::int64_t>(i)].data());
  }
  return logits;
}

}  // namespace heed
