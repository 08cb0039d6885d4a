#include "engine/views/graph_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/carried_transcoders.h"
#include "engine/views/token_json.h"
#include "microscope/features/dictionary.h"

namespace heed {
namespace {

// The names that viewers tell nodes apart by: LAYER_NUMBER_POSITION.
std::string node_id(const GraphNode& node) {
  switch (node.kind) {
    case NodeKind::token: return fmt::format("E_{}_{}", node.number, node.position);
    case NodeKind::neuron:
    case NodeKind::feature: return fmt::format("{}_{}_{}", node.layer, node.number, node.position);
    case NodeKind::error: return fmt::format("error_{}_{}", node.layer, node.position);
    case NodeKind::logit: break;
  }
  return fmt::format("{}_{}_{}", node.layer + 1, node.number, node.position);
}

std::string layer_id(const GraphNode& node) {
  if (node.kind == NodeKind::token) return "E";
  return std::to_string(node.kind == NodeKind::logit ? node.layer + 1 : node.layer);
}

const char* feature_type(NodeKind kind) {
  switch (kind) {
    case NodeKind::token: return "embedding";
    case NodeKind::neuron:
    case NodeKind::feature: return "cross layer transcoder";
    case NodeKind::error: return "mlp reconstruction error";
    case NodeKind::logit: break;
  }
  return "logit";
}

// Layer and neuron or feature as one number: Cantor's pairing.
std::int64_t feature_number(const GraphNode& node) {
  if (node.kind == NodeKind::token) return node.position;
  if (node.kind == NodeKind::logit || node.kind == NodeKind::error) return node.number;
  const std::int64_t sum = node.layer + node.number;
  return sum * (sum + 1) / 2 + node.number;
}

std::string label(const LoadedModel& model, const GraphNode& node) {
  const auto text = [&] { return token_text(model, static_cast<std::int32_t>(node.number)); };
  switch (node.kind) {
    case NodeKind::token: return text();
    case NodeKind::neuron: return fmt::format("L{}N{}@{}", node.layer, node.number, node.position);
    case NodeKind::feature: return fmt::format("L{}F{}@{}", node.layer, node.number, node.position);
    case NodeKind::error: return fmt::format("L{} error@{}", node.layer, node.position);
    case NodeKind::logit: break;
  }
  return fmt::format("Output \"{}\" (p={:.3f})", text(), node.value);
}

}  // namespace

OrderedJson graph_json(const LoadedModel& model, const AttributionGraph& graph,
                       const std::string& prompt) {
  OrderedJson nodes = OrderedJson::array(), links = OrderedJson::array();
  bool has_target = false;
  for (const GraphNode& node : graph.nodes) {
    const bool is_logit = node.kind == NodeKind::logit;
    nodes.push_back({{"node_id", node_id(node)},
                     {"feature", feature_number(node)},
                     {"layer", layer_id(node)},
                     {"ctx_idx", node.position},
                     {"feature_type", feature_type(node.kind)},
                     {"token_prob", is_logit ? node.value : 0.0},
                     {"is_target_logit", is_logit && !has_target},
                     {"run_idx", 0},
                     {"reverse_ctx_idx", 0},
                     {"jsNodeId", node_id(node)},
                     {"clerp", label(model, node)},
                     {"influence", node.influence},
                     {"activation", node.kind == NodeKind::neuron || node.kind == NodeKind::feature
                                        ? OrderedJson(node.value)
                                        : OrderedJson(nullptr)}});
    has_target = has_target || is_logit;
  }
  for (std::size_t target = 0; target < graph.nodes.size(); ++target) {
    for (std::size_t source = 0; source < graph.nodes.size(); ++source) {
      if (graph.edge(target, source) == 0) continue;
      links.push_back({{"source", node_id(graph.nodes[source])},
                       {"target", node_id(graph.nodes[target])},
                       {"weight", graph.edge(target, source)}});
    }
  }
  OrderedJson transcoders = OrderedJson::array();
  for (const SparseDictionary& each : graph.transcoders) {
    transcoders.push_back(each.dictionary().specification().input_point);
  }
  OrderedJson pieces = OrderedJson::array();
  std::string text = prompt;
  for (const std::int32_t token : graph.tokens) {
    pieces.push_back(token_text(model, token));
    if (prompt.empty()) text += token_text(model, token);
  }
  return {{"metadata",
           {{"slug", "heed"},
            {"scan", model.name},
            {"transcoder_list", std::move(transcoders)},
            {"prompt_tokens", std::move(pieces)},
            {"prompt", std::move(text)},
            {"node_threshold", nullptr},
            {"schema_version", 1}}},
          {"qParams",
           {{"pinnedIds", OrderedJson::array()},
            {"supernodes", OrderedJson::array()},
            {"linkType", "both"},
            {"clickedId", ""},
            {"sg_pos", ""}}},
          {"nodes", std::move(nodes)},
          {"links", std::move(links)}};
}

OrderedJson feature_name_json(const LoadedModel& model, std::int64_t layer, std::int64_t feature) {
  FeatureName name;
  if (const auto carried = carried_transcoders(model)) {
    name = carried->names.at(static_cast<std::size_t>(layer)).at(static_cast<std::size_t>(feature));
  }
  std::vector<std::pair<std::int32_t, std::int64_t>> counts;  // the strongest first
  for (const std::int32_t peak : name.peaks) {
    const auto found = std::ranges::find(counts, peak, [](const auto& each) { return each.first; });
    if (found == counts.end()) {
      counts.emplace_back(peak, 1);
    } else {
      ++found->second;
    }
  }
  std::ranges::stable_sort(counts, std::greater{}, [](const auto& each) { return each.second; });
  OrderedJson words = OrderedJson::array();
  for (const auto& [token, contexts] : counts) {
    words.push_back({{"token", token_json(model, token)}, {"contexts", contexts}});
  }
  return {{"words", std::move(words)},
          {"context", tokens_json(model, name.context)},
          {"of", std::ssize(name.peaks)}};
}

OrderedJson causes_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                        const WordCauses& causes, FeatureNames named) {
  const bool has_features = causes.unit == NodeKind::feature;
  OrderedJson paths = OrderedJson::array();
  for (const CausePath& path : causes.paths) {
    OrderedJson features = OrderedJson::array();
    for (std::size_t i = 0; has_features && i < path.units.size(); ++i) {
      OrderedJson feature{{"feature", path.units[i]},
                          {"activation", json_number(path.activations[i])}};
      if (named == FeatureNames::carried) {
        feature.update(feature_name_json(model, path.layer, path.units[i]));
      }
      features.push_back(std::move(feature));
    }
    OrderedJson controls = OrderedJson::array();
    for (const double control : path.controls) controls.push_back(json_number(control));
    paths.push_back({{"from", path.token},
                     {"token", token_json(model, tokens[static_cast<std::size_t>(path.token)])},
                     {"layer", path.layer},
                     {"position", path.position},
                     {"neurons", has_features ? std::vector<std::int64_t>() : path.units},
                     {"features", std::move(features)},
                     {"share", json_number(path.share)},
                     {"without", json_number(path.without)},
                     {"instead", token_json(model, path.instead)},
                     {"instead_probability", json_number(path.instead_probability)},
                     {"controls", std::move(controls)},
                     {"control", json_number(path.strongest_control(causes.probability))},
                     {"cause", path.is_cause(causes.probability)}});
  }
  return {{"token", token_json(model, causes.token)},
          {"probability", json_number(causes.probability)},
          {"unit", node_kind_name(causes.unit)},
          {"graph_units", causes.units},
          {"paths", std::move(paths)}};
}

}  // namespace heed
