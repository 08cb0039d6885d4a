// The attribution graphs of the public facade.
#include "heed/graphs.h"

#include "base/json.h"
#include "engine/facade.h"
#include "engine/views/graph_json.h"
#include "microscope/explain/attribution_graph.h"
#include "microscope/intervene/graph_effects.h"

namespace heed {
namespace {

const Transformer& predictor_of(const Model& model) {
  return ModelAccess::of_one_text(model).transformer;
}

}  // namespace

GraphEstimate estimate_graph(const Model& model, std::int64_t positions,
                             const GraphOptions& options) {
  return estimate_graph(predictor_of(model), positions, options);
}

AttributionGraph attribution_graph(const Model& model, std::span<const std::int32_t> tokens,
                                   const GraphOptions& options) {
  return attribution_graph(predictor_of(model), tokens, options);
}

std::vector<NodeEffect> switch_off_effects(const Model& model, const AttributionGraph& graph,
                                           std::size_t count) {
  return switch_off_effects(predictor_of(model), graph, count);
}

NodeEdges edges_into(const Model& model, std::span<const std::int32_t> tokens,
                     const std::vector<GraphTarget>& targets, LogitBaseline baseline,
                     const std::vector<SparseDictionary>& transcoders) {
  return edges_into(predictor_of(model), tokens, targets, baseline, transcoders);
}

WordCauses word_causes(const Model& model, std::span<const std::int32_t> tokens,
                       const CauseOptions& options) {
  return word_causes(predictor_of(model), tokens, options);
}

std::string graph_json(const Model& model, const AttributionGraph& graph,
                       const std::string& prompt) {
  return json_text(graph_json(ModelAccess::of_one_text(model), graph, prompt));
}

}  // namespace heed
