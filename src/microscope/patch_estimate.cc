#include "microscope/patch_estimate.h"

#include "base/error.h"
#include "microscope/logit_gradients.h"

namespace heed {
namespace {

enum class Columns { positions, heads, heads_by_position };

// What a grid puts back, and what its columns are.
struct GridPoint {
  Point point;
  Columns columns;
};

GridPoint grid_point(PatchGrid grid) {
  switch (grid) {
    case PatchGrid::residual_pre: return {Point::residual_pre, Columns::positions};
    case PatchGrid::residual_mid: return {Point::residual_mid, Columns::positions};
    case PatchGrid::attention_out: return {Point::attention_out, Columns::positions};
    case PatchGrid::feed_forward_out: return {Point::feed_forward_out, Columns::positions};
    case PatchGrid::head_out: return {Point::mixed_values, Columns::heads};
    case PatchGrid::head_query: return {Point::query, Columns::heads};
    case PatchGrid::head_key: return {Point::key, Columns::heads};
    case PatchGrid::head_value: return {Point::value, Columns::heads};
    case PatchGrid::head_pattern: return {Point::pattern, Columns::heads};
    case PatchGrid::head_out_by_position: return {Point::mixed_values, Columns::heads_by_position};
    case PatchGrid::head_query_by_position: return {Point::query, Columns::heads_by_position};
    case PatchGrid::head_key_by_position: return {Point::key, Columns::heads_by_position};
    case PatchGrid::head_value_by_position: return {Point::value, Columns::heads_by_position};
    case PatchGrid::head_pattern_by_position: return {Point::pattern, Columns::heads_by_position};
    default: break;
  }
  fail(ErrorCode::invalid_argument, "'{}' has no estimate", patch_grid_name(grid));
}

}  // namespace

PatchResult estimate_sweep(const Gpt& gpt, const PatchRequest& request) {
  const GptConfig& config = gpt.config();
  const auto [point, kind] = grid_point(request.grid);
  std::vector<Site> sites;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) sites.push_back({point, layer});
  const AttributionPatching found =
      estimate_patching(gpt, request.clean, request.corrupted,
                        {.question = {request.metric.answer, request.metric.wrong}}, sites);

  const auto positions = std::ssize(request.clean);
  PatchResult result{.grid = request.grid,
                     .rows = config.layers,
                     .clean = found.clean_metric,
                     .corrupted = found.corrupted_metric};
  result.columns = kind == Columns::positions ? positions
                   : kind == Columns::heads   ? config.heads
                                              : config.heads * positions;
  result.cells = result.rows * result.columns;
  result.values.assign(static_cast<std::size_t>(result.cells), found.corrupted_metric);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const View<const float> effects = found.effects[static_cast<std::size_t>(layer)].view()[0];
    double* const row = result.values.data() + layer * result.columns;
    for (std::int64_t t = 0; t < positions; ++t) {
      if (kind == Columns::positions) {
        row[t] += effects(t);
        continue;
      }
      for (std::int64_t head = 0; head < config.heads; ++head) {
        const float effect = point == Point::pattern ? effects(head, t) : effects(t, head);
        row[kind == Columns::heads ? head : head * positions + t] += effect;
      }
    }
  }
  if (request.progress) request.progress(result.cells, result.cells);
  return result;
}

}  // namespace heed
