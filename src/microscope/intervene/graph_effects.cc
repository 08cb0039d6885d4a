#include "microscope/intervene/graph_effects.h"

#include <algorithm>
#include <array>
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

// (P, O): what features of a layer write at each of its points, with these activations.
std::vector<double> written_by(const LayerTranscoders& transcoders, std::int64_t layer,
                               std::span<const std::int64_t> features,
                               std::span<const double> activations) {
  const Dictionary& dictionary = transcoders.of(layer);
  const DictionarySpecification& own = dictionary.specification();
  std::vector<double> sum(static_cast<std::size_t>(own.points() * own.outputs));
  for (std::size_t i = 0; i < features.size(); ++i) {
    const float* const row =
        dictionary.weights().decoder.data() + features[i] * own.points() * own.outputs;
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += activations[i] * double{row[c]};
  }
  return sum;
}

double length_of(std::span<const double> vector) {
  return std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
}

// Takes away what was written by a layer's features at a position: all else of the model, and with
// it what their transcoder leaves out, stays.
Interventions taken_away(const StackSpecification& stack, const LayerTranscoders& transcoders,
                         std::int64_t layer, std::int64_t position,
                         std::span<const double> written) {
  const std::vector<Point>& points = transcoders.outputs(layer);
  const std::size_t width = written.size() / points.size();
  std::vector<Intervention> edits;
  for (std::size_t p = 0; p < points.size(); ++p) {
    std::vector<float> taken;
    for (const double value : written.subspan(p * width, width)) {
      taken.push_back(static_cast<float>(-value));
    }
    edits.push_back({.point = points[p],
                     .where = {.first_position = position, .last_position = position},
                     .change = AddVector{std::move(taken)}});
  }
  return {stack, std::move(edits)};
}

// Neurons, or features, of a graph that stand at one place and read more from one token than from
// any other.
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

// Drawn from the first `width`, as many as a path has of its own, and none of these.
std::vector<std::int64_t> other_units(const CausePath& path, std::int64_t width,
                                      std::uint64_t number) {
  const std::set<std::int64_t> own(path.units.begin(), path.units.end());
  const auto all = static_cast<std::uint64_t>(width);
  const Permutation order(all, cause_control_seed, number);
  std::vector<std::int64_t> others;
  for (std::uint64_t i = 0; i < all && others.size() < path.units.size(); ++i) {
    const auto other = static_cast<std::int64_t>(order(i));
    if (!own.contains(other)) others.push_back(other);
  }
  return others;
}

// The paths' passes: what they are without, and with as much taken away in other directions.
class PathEdits {
 public:
  PathEdits(const Transformer& model, const LayerTranscoders& transcoders)
      : model_(model), stack_(model.specification()), transcoders_(transcoders) {}

  Interventions off(const CausePath& path) const {
    if (transcoders_.empty()) return neurons_off(stack_, path.layer, path.position, path.units);
    return taken_away(stack_, transcoders_, path.layer, path.position,
                      written_by(transcoders_, path.layer, path.units, path.activations));
  }

  Interventions control(const CausePath& path, std::uint64_t number) const {
    return transcoders_.empty() ? control_of_neurons(path, number)
                                : control_of_features(path, number);
  }

 private:
  Interventions control_of_neurons(const CausePath& path, std::uint64_t number) const {
    const std::vector<std::int64_t> others = other_units(path, stack_.feed_forward(), number);
    const View<const float> weight =
        model_.parameters().restored(model_.parameters().block(path.layer).down.weight);  // (C, F)
    std::vector<float> taken(static_cast<std::size_t>(stack_.channels));
    for (std::size_t i = 0; i < others.size(); ++i) {
      const auto activation = static_cast<float>(path.activations[i]);
      for (std::size_t c = 0; c < taken.size(); ++c) {
        taken[c] -= activation * weight(static_cast<std::int64_t>(c), others[i]);
      }
    }
    return {stack_,
            {{.point = {PointKind::feed_forward_out, path.layer},
              .where = {.first_position = path.position, .last_position = path.position},
              .change = AddVector{std::move(taken)}}}};
  }

  Interventions control_of_features(const CausePath& path, std::uint64_t number) const {
    const std::int64_t features = transcoders_.of(path.layer).specification().features;
    const std::vector<std::int64_t> others = other_units(path, features, number);
    std::vector<double> drawn = written_by(transcoders_, path.layer, others, path.activations);
    const double length = length_of(drawn);
    const double wanted =
        length_of(written_by(transcoders_, path.layer, path.units, path.activations));
    for (double& value : drawn) value *= length > 0 ? wanted / length : 0;
    return taken_away(stack_, transcoders_, path.layer, path.position, drawn);
  }

  const Transformer& model_;
  const StackSpecification& stack_;
  const LayerTranscoders& transcoders_;
};

// Memory of what is measured once the graph is there, at most: its shares, the edits, and the
// logits that they leave.
double bytes_of_measuring(const Transformer& model, std::int64_t positions,
                          const CauseOptions& options) {
  const StackSpecification& stack = model.specification();
  const auto edits = static_cast<double>(options.paths * (1 + options.controls));
  const auto units = static_cast<double>(options.max_neurons);
  const bool has_errors = !options.transcoders.empty();
  const double nodes =
      units + 1 + static_cast<double>(positions * (has_errors ? 1 + stack.layers : 1));
  const double shares = sizeof(double) * nodes * (nodes + static_cast<double>(positions) + 2);
  // A vector at each point that is edited, and two more while it is made.
  const auto points = static_cast<double>(has_errors ? stack.layers : 1);
  const double vectors =
      edits * points * static_cast<double>(stack.channels) * (sizeof(float) + 2 * sizeof(double));
  // Restored for the controls of neurons where the file has blocks, and kept.
  const double restored = model.parameters().prepared_format() == kernels::WeightFormat::f32
                              ? 0
                              : static_cast<double>(options.paths * sizeof(float)) *
                                    static_cast<double>(stack.channels * stack.feed_forward());
  return shares + vectors + restored +
         edited_logits_bytes(model, positions,
                             static_cast<std::int64_t>(options.paths * (1 + options.controls)));
}

// Of the most neurons, or features, that memory suffices for.
AttributionGraph graph_within(const Transformer& model, std::span<const std::int32_t> tokens,
                              std::int32_t word, const CauseOptions& options) {
  GraphOptions graph{.logits = {word},
                     .baseline = LogitBaseline::alternatives,
                     .transcoders = options.transcoders,
                     .max_neurons = options.max_neurons,
                     .poll = options.poll};
  const double measuring = bytes_of_measuring(model, std::ssize(tokens), options);
  graph.max_bytes = std::max<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(options.max_bytes) - measuring), 0);
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
      edits.push_back(taken_away(
          model.specification(), transcoders, node.layer, node.position,
          written_by(transcoders, node.layer, std::array{node.number}, std::array{node.value})));
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
  const LayerTranscoders transcoders(options.transcoders, model);
  require_attribution_graph(model, transcoders);
  require_text_fits(model.specification(), tokens);
  const std::vector<double> probabilities = next_token_probabilities(model, tokens);
  const auto likeliest = std::ranges::max_element(probabilities);
  WordCauses causes{.token = static_cast<std::int32_t>(likeliest - probabilities.begin()),
                    .probability = *likeliest,
                    .unit = transcoders.empty() ? NodeKind::neuron : NodeKind::feature};
  const AttributionGraph graph = graph_within(model, tokens, causes.token, options);
  causes.units = std::ssize(nodes_of_kind(graph, causes.unit));

  const PathEdits path_edits(model, transcoders);
  std::vector<Interventions> edits;
  for (const Bundle& bundle : strongest_bundles(graph, options.paths)) {
    CausePath path{.token = bundle.token,
                   .layer = bundle.layer,
                   .position = bundle.position,
                   .share = bundle.share};
    for (const std::size_t i : bundle.nodes) {
      path.units.push_back(graph.nodes[i].number);
      path.activations.push_back(graph.nodes[i].value);
    }
    edits.push_back(path_edits.off(path));
    for (std::size_t i = 0; i < options.controls; ++i) {
      edits.push_back(path_edits.control(path, causes.paths.size() * options.controls + i));
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
