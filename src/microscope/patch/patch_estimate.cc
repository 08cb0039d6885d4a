#include "microscope/patch/patch_estimate.h"

#include "microscope/explain/logit_gradients.h"
#include "microscope/patch/patch_grid.h"
#include "model/input_checks.h"

namespace heed {
PatchResult estimate_sweep(const Transformer& gpt, const PatchRequest& request) {
  require_predicts_next(gpt.specification(), "patching");
  require_sums_to_logits(gpt.specification(), "patching");
  const StackSpecification& config = gpt.specification();
  const PatchGridKind& kind = patch_grid_kind(request.grid);
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    points.push_back({kind.point, layer});
  const AttributionPatching found =
      estimate_patching(gpt, request.clean, request.corrupted,
                        {.question = {request.metric.answer, request.metric.wrong}}, points);

  const auto positions = std::ssize(request.clean);
  const std::int64_t heads = patched_heads(config, kind);
  PatchResult result{.grid = request.grid,
                     .rows = config.layers,
                     .clean = found.clean_metric,
                     .corrupted = found.corrupted_metric};
  const bool by_position = kind.columns == PatchColumns::heads_by_position;
  result.columns = kind.columns == PatchColumns::positions ? positions
                   : by_position                           ? heads * positions
                                                           : heads;
  result.cells = result.rows * result.columns;
  result.values.assign(static_cast<std::size_t>(result.cells), found.corrupted_metric);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const View<const float> effects = found.effects[static_cast<std::size_t>(layer)].view()[0];
    double* const row = result.values.data() + layer * result.columns;
    for (std::int64_t t = 0; t < positions; ++t) {
      if (kind.columns == PatchColumns::positions) {
        row[t] += effects(t);
        continue;
      }
      for (std::int64_t head = 0; head < heads; ++head) {
        const float effect = kind.point == PointKind::pattern ? effects(head, t) : effects(t, head);
        row[by_position ? head * positions + t : head] += effect;
      }
    }
  }
  if (request.progress) request.progress(result.cells, result.cells);
  return result;
}

}  // namespace heed
