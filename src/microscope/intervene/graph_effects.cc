#include "microscope/intervene/graph_effects.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "microscope/explain/attribution_edges.h"
#include "microscope/explain/attribution_graph.h"
#include "microscope/explain/layer_transcoders.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::uint64_t cause_control_seed = 12;
constexpr double min_of_a_cause = 0.005;  // of a probability
constexpr std::int64_t min_cause_neurons = 16;

Interventions neurons_off(const StackSpecification& stack, std::int64_t layer,
                          std::int64_t position, std::vector<std::int64_t> neurons) {
  return {stack,
          {{.point = {PointKind::neurons_post, layer},
            .where = {.neurons = std::move(neurons),
                      .first_position = position,
                      .last_position = position},
            .change = SetZero{}}}};
}

void require_feature(const LayerTranscoders& transcoders, const GraphNode& node) {
  require(!transcoders.empty() && node.layer >= 0 && node.layer < transcoders.layers() &&
              node.number >= 0 && node.number < transcoders.of(node.layer).specification().features,
          ErrorCode::invalid_argument,
          "the graph has feature {} of layer {}, which its transcoders do not have", node.number,
          node.layer);
}

// What a feature writes, taken away at all points that it writes.
Interventions feature_off(const StackSpecification& stack, const LayerTranscoders& transcoders,
                          const GraphNode& node) {
  const Dictionary& dictionary = transcoders.of(node.layer);
  const DictionarySpecification& own = dictionary.specification();
  const std::vector<Point>& points = transcoders.outputs(node.layer);
  const float* row = dictionary.weights().decoder.data() + node.number * own.points() * own.outputs;
  std::vector<Intervention> edits;
  for (const Point& point : points) {
    std::vector<float> taken(row, row + own.outputs);
    row += own.outputs;
    for (float& value : taken) value *= -static_cast<float>(node.value);
    edits.push_back({.point = point,
                     .where = {.first_position = node.position, .last_position = node.position},
                     .change = AddVector{std::move(taken)}});
  }
  return {stack, std::move(edits)};
}

// Neurons of a graph that stand at one place and read more from one token than from any other.
struct Bundle {
  std::int64_t token = 0, layer = 0, position = 0;
  std::vector<std::size_t> nodes;  // the most influential first
  double share = 0;
};

// (nodes): what reaches the first logit from each node over all ways, with its sign.
std::vector<double> signed_influence(const AttributionGraph& graph,
                                     std::span<const double> shares) {
  const std::size_t size = graph.nodes.size();
  std::vector<double> found(size);
  found[nodes_of_kind(graph, NodeKind::logit).front()] = 1;
  for (const std::size_t target : targets_first(graph)) {
    for (std::size_t source = 0; source < size; ++source) {
      found[source] += found[target] * shares[target * size + source];
    }
  }
  return found;
}

// (nodes, T): the share that each token has, over all ways, in what a node reads.
std::vector<double> token_shares(const AttributionGraph& graph, std::span<const double> shares) {
  const std::size_t size = graph.nodes.size(), tokens = graph.tokens.size();
  std::vector<double> found(size * tokens);
  const std::vector<std::size_t> order = targets_first(graph);
  for (auto target = order.rbegin(); target != order.rend(); ++target) {
    for (std::size_t source = 0; source < size; ++source) {
      const double share = std::abs(shares[*target * size + source]);
      if (share == 0) continue;
      if (source < tokens) {  // the tokens are the first nodes
        found[*target * tokens + source] += share;
        continue;
      }
      for (std::size_t t = 0; t < tokens; ++t) {
        found[*target * tokens + t] += share * found[source * tokens + t];
      }
    }
  }
  return found;
}

// The strongest first, at most one from each token.
std::vector<Bundle> strongest_bundles(const AttributionGraph& graph, std::size_t count) {
  const std::vector<double> shares = signed_shares(graph);
  const std::vector<double> influence = signed_influence(graph, shares);
  const std::vector<double> of_tokens = token_shares(graph, shares);
  const std::size_t tokens = graph.tokens.size();
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Bundle> found;
  for (const std::size_t i : most_influential_units(graph)) {
    if (influence[i] <= 0) continue;
    const GraphNode& node = graph.nodes[i];
    const auto own = of_tokens.begin() + static_cast<std::ptrdiff_t>(i * tokens);
    const auto most = std::max_element(own, own + static_cast<std::ptrdiff_t>(tokens));
    Bundle& bundle = found[{most - own, node.layer, node.position}];
    bundle.token = most - own;
    bundle.layer = node.layer;
    bundle.position = node.position;
    bundle.nodes.push_back(i);
    bundle.share += influence[i] * *most;
  }
  std::vector<Bundle> bundles;
  for (auto& [place, bundle] : found) bundles.push_back(std::move(bundle));
  std::ranges::stable_sort(bundles, std::greater{}, &Bundle::share);
  std::set<std::int64_t> seen;
  std::erase_if(bundles, [&](const Bundle& bundle) { return !seen.insert(bundle.token).second; });
  bundles.resize(std::min(bundles.size(), count));
  return bundles;
}

// As much taken away in other directions: the bundle's activations, of other neurons, drawn.
Interventions control_of(const Transformer& model, const AttributionGraph& graph,
                         const Bundle& bundle, std::uint64_t number) {
  const StackSpecification& stack = model.specification();
  std::set<std::int64_t> own;
  for (const std::size_t i : bundle.nodes) own.insert(graph.nodes[i].number);
  const auto width = static_cast<std::uint64_t>(stack.feed_forward());
  const Permutation order(width, cause_control_seed, number);
  const View<const float> weight =
      model.parameters().restored(model.parameters().block(bundle.layer).down.weight);  // (C, F)
  std::vector<float> taken(static_cast<std::size_t>(stack.channels));
  std::size_t next = 0;
  for (std::uint64_t i = 0; i < width && next < bundle.nodes.size(); ++i) {
    const auto other = static_cast<std::int64_t>(order(i));
    if (own.contains(other)) continue;
    const auto activation = static_cast<float>(graph.nodes[bundle.nodes[next++]].value);
    for (std::size_t c = 0; c < taken.size(); ++c) {
      taken[c] -= activation * weight(static_cast<std::int64_t>(c), other);
    }
  }
  return {stack,
          {{.point = {PointKind::feed_forward_out, bundle.layer},
            .where = {.first_position = bundle.position, .last_position = bundle.position},
            .change = AddVector{std::move(taken)}}}};
}

// Of the most neurons that memory suffices for.
AttributionGraph graph_within(const Transformer& model, std::span<const std::int32_t> tokens,
                              std::int32_t word, const CauseOptions& options) {
  GraphOptions graph{.logits = {word},
                     .baseline = LogitBaseline::alternatives,
                     .max_neurons = options.max_neurons,
                     .max_bytes = options.max_bytes,
                     .poll = options.poll};
  while (graph.max_neurons > min_cause_neurons &&
         graph_bytes(model, std::ssize(tokens), graph) > graph.max_bytes) {
    graph.max_neurons = std::max(min_cause_neurons, graph.max_neurons / 2);
  }
  return attribution_graph(model, tokens, graph);
}

}  // namespace

double CausePath::strongest_control(double probability) const {
  return *std::ranges::max_element(controls, {},
                                   [&](double control) { return std::abs(probability - control); });
}

bool CausePath::is_cause(double probability) const {
  const double taken = probability - without;
  return taken >= min_of_a_cause && std::ranges::all_of(controls, [&](double control) {
           return taken > std::abs(probability - control);
         });
}

std::vector<NodeEffect> switch_off_effects(const Transformer& model, const AttributionGraph& graph,
                                           std::size_t count) {
  const std::vector<std::size_t> explained = nodes_of_kind(graph, NodeKind::logit);
  require_text_fits(model.specification(), graph.tokens);
  require(model.editor() == nullptr, ErrorCode::unsupported,
          "an attribution graph needs the model as it is: edits and hooks have no edges");
  require(!explained.empty() &&
              graph.nodes[explained.front()].number < model.specification().vocabulary_size,
          ErrorCode::invalid_argument, "the graph is of no logit of this model");
  const LayerTranscoders transcoders(graph.transcoders, model);
  std::vector<NodeEffect> effects;
  std::vector<Interventions> edits;
  edits.push_back({model.specification(), {}});  // the model as it is
  for (const std::size_t i : most_influential_units(graph)) {
    if (effects.size() == count) break;
    const GraphNode& node = graph.nodes[i];
    effects.push_back({.node = i});
    if (node.kind == NodeKind::feature) {
      require_feature(transcoders, node);
      edits.push_back(feature_off(model.specification(), transcoders, node));
      continue;
    }
    edits.push_back(neurons_off(model.specification(), node.layer, node.position, {node.number}));
  }
  const std::int64_t word = graph.nodes[explained.front()].number;
  const Tensor<float> logits = edited_logits(model, graph.tokens, edits);
  const auto value = [&](std::size_t edit) {
    const std::span<const float> row = logits.view()[static_cast<std::int64_t>(edit)].span();
    return double{row[static_cast<std::size_t>(word)]} -
           std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
  };
  for (std::size_t i = 0; i < effects.size(); ++i) effects[i].change = value(i + 1) - value(0);
  return effects;
}

WordCauses word_causes(const Transformer& model, std::span<const std::int32_t> tokens,
                       const CauseOptions& options) {
  require(options.paths >= 1 && options.controls >= 1, ErrorCode::invalid_argument,
          "{} paths with {} controls each: expected at least one", options.paths, options.controls);
  require_attribution_graph(model);
  require_text_fits(model.specification(), tokens);
  const std::vector<double> probabilities = next_token_probabilities(model, tokens);
  const auto likeliest = std::ranges::max_element(probabilities);
  WordCauses causes{.token = static_cast<std::int32_t>(likeliest - probabilities.begin()),
                    .probability = *likeliest};
  const AttributionGraph graph = graph_within(model, tokens, causes.token, options);
  causes.neurons = std::ssize(nodes_of_kind(graph, NodeKind::neuron));

  std::vector<Interventions> edits;
  for (const Bundle& bundle : strongest_bundles(graph, options.paths)) {
    CausePath path{.token = bundle.token,
                   .layer = bundle.layer,
                   .position = bundle.position,
                   .share = bundle.share};
    for (const std::size_t i : bundle.nodes) path.neurons.push_back(graph.nodes[i].number);
    edits.push_back(neurons_off(model.specification(), path.layer, path.position, path.neurons));
    for (std::size_t i = 0; i < options.controls; ++i) {
      edits.push_back(control_of(model, graph, bundle, causes.paths.size() * options.controls + i));
    }
    causes.paths.push_back(std::move(path));
  }
  const Tensor<float> logits = edited_logits(model, tokens, edits, options.poll);
  std::int64_t row = 0;
  const auto next = [&] { return probabilities_of(logits.view()[row++].span()); };
  const auto word = static_cast<std::size_t>(causes.token);
  for (CausePath& path : causes.paths) {
    const std::vector<double> without = next();
    const auto first = std::ranges::max_element(without);
    path.without = without[word];
    path.instead = static_cast<std::int32_t>(first - without.begin());
    path.instead_probability = *first;
    for (std::size_t i = 0; i < options.controls; ++i) path.controls.push_back(next()[word]);
  }
  return causes;
}

}  // namespace heed
