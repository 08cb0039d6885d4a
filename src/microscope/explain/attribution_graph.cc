#include "microscope/explain/attribution_graph.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "microscope/explain/attribution_edges.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"
#include "tensor/allocated_bytes.h"
#include "tensor/device.h"

namespace heed {
namespace {

constexpr std::int64_t max_together = 64;         // neurons or features chosen at a time
constexpr std::int64_t max_gradient_rows = 4096;  // positions of all nodes of one backward pass
constexpr std::int64_t max_likeliest = 10;
constexpr double likeliest_share = 0.95;
constexpr double tiny = 1e-30;
constexpr std::int64_t timed_positions = 32;

// Neurons or features that become nodes at most: there may be fewer than are asked for.
std::int64_t wanted_units(const GraphSources& sources, const GraphOptions& options) {
  return std::min(options.max_neurons, sources.units);
}

std::int64_t explained_count(const GraphOptions& options) {
  return options.logits.empty() ? max_likeliest : std::ssize(options.logits);
}

std::int64_t nodes_of_one_pass(std::int64_t positions) {
  return std::clamp<std::int64_t>(max_gradient_rows / positions, 1, max_together);
}

// Seconds of the work, at the rate of a pass over the first positions.
double graph_seconds(const Transformer& model, const GraphSources& sources,
                     const GraphOptions& options, const LayerTranscoders& transcoders) {
  const StackSpecification& stack = model.specification();
  const std::int64_t few = std::min(sources.positions, timed_positions);
  const std::vector<std::int32_t> tokens(static_cast<std::size_t>(few), 0);
  const StackActivations activations(stack, 1, few, Keep::one_block, 0, model.device());
  const auto begin = std::chrono::steady_clock::now();
  model.forward({tokens.data(), {1, few}}, {.sequences = {1, few}}, activations);
  synchronize_accelerator();
  const std::chrono::duration<double> pass = std::chrono::steady_clock::now() - begin;
  const auto channels = static_cast<double>(stack.channels);
  const double of_row =
      static_cast<double>(stack.layers) * channels *
      static_cast<double>(stack.block.attention.projected_width() + stack.attention_width() +
                          (stack.block.feed_forward.gated ? 3 : 2) * stack.feed_forward());
  const double rate = of_row * static_cast<double>(few) / std::max(pass.count(), 1e-9);
  const double targets =
      static_cast<double>(wanted_units(sources, options) + explained_count(options));
  return (AttributionEdges::work(stack, sources.positions, transcoders) * targets +
          (of_row + transcoders.work_of_encoding()) * static_cast<double>(sources.positions)) /
         rate;
}

// Of each node and each target beside their edges: the node itself, and its places in lists.
constexpr double bytes_of_node = sizeof(GraphNode) + 4 * sizeof(std::int64_t);
constexpr double bytes_of_target = sizeof(GraphTarget) + sizeof(View<const float>) +
                                   sizeof(std::shared_ptr<void>) + 8 * sizeof(std::int64_t);
constexpr double bytes_of_source = 1 + sizeof(double) + sizeof(std::int64_t);  // three lists

// Bytes of a graph of these sources, at most.
std::int64_t bytes_of_sources(const Transformer& model, const GraphSources& sources,
                              const GraphOptions& options, const LayerTranscoders& transcoders) {
  const StackSpecification& stack = model.specification();
  const std::int64_t units = wanted_units(sources, options);
  const std::int64_t logits = std::min(explained_count(options), stack.vocabulary_size);
  const std::int64_t together =
      std::min(nodes_of_one_pass(sources.positions), std::max(units, logits));
  const auto count = static_cast<double>(sources.count());
  const auto targets = static_cast<double>(units + logits);
  const double nodes = targets + static_cast<double>(sources.positions + sources.errors);
  // Rows of edges, some targets' together and those of the last ones by themselves.
  const double batches = targets / static_cast<double>(together) + 2;
  const double rows = max_allocated_bytes(sizeof(float) * count * static_cast<double>(together));
  const double edges = batches * (rows - sizeof(float) * count * static_cast<double>(together)) +
                       sizeof(float) * count * targets + sizeof(float) * nodes * nodes;
  // Beside what AttributionEdges keeps, the order of the vocabulary and a logit's weights.
  const double lists = bytes_of_source * count + bytes_of_node * nodes + bytes_of_target * targets +
                       static_cast<double>(stack.vocabulary_size) * 2 * sizeof(float);
  const double bytes = edges + lists +
                       AttributionEdges::bytes_needed(model, sources.positions, together,
                                                      std::min(together, logits), transcoders) +
                       max_allocated_bytes(static_cast<double>(
                           RecordedPass::bytes_needed(model.architecture(), sources.positions)));
  constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max() / 2;
  return bytes < static_cast<double>(unbounded) ? static_cast<std::int64_t>(bytes) : unbounded;
}

void require_options(const Transformer& model, const GraphOptions& options,
                     const LayerTranscoders& transcoders) {
  require_attribution_graph(model, transcoders);
  require(options.max_neurons >= 1, ErrorCode::invalid_argument,
          "max_neurons is {}, expected at least 1", options.max_neurons);
}

void require_memory(const Transformer& model, const GraphSources& sources,
                    const GraphOptions& options, const LayerTranscoders& transcoders) {
  const std::int64_t bytes = bytes_of_sources(model, sources, options, transcoders);
  if (bytes <= options.max_bytes) return;
  fail(ErrorCode::invalid_argument,
       "the edges of {} {} of {} tokens take {} MiB and about {:.2g} s, expected at most {} MiB: a "
       "shorter text, or a smaller max_neurons",
       wanted_units(sources, options), transcoders.empty() ? "neurons" : "features",
       sources.positions, bytes >> 20, graph_seconds(model, sources, options, transcoders),
       options.max_bytes >> 20);
}

struct ExplainedLogit {
  std::int32_t token;
  double probability;
};

// Those that are asked for, or the likeliest.
std::vector<ExplainedLogit> explained_logits(std::span<const double> probabilities,
                                             const std::vector<std::int32_t>& asked) {
  std::vector<ExplainedLogit> found;
  const auto add = [&](std::int32_t token) {
    found.push_back({token, probabilities[static_cast<std::size_t>(token)]});
  };
  if (!asked.empty()) {
    for (const std::int32_t token : asked) {
      const bool is_known = token >= 0 && token < std::ssize(probabilities);
      require(is_known && std::ranges::count(asked, token) == 1, ErrorCode::invalid_argument,
              "the explained logits have token {}, expected different tokens of the vocabulary of "
              "{}",
              token, probabilities.size());
      add(token);
    }
    return found;
  }
  std::vector<std::int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const std::int64_t most = std::min<std::int64_t>(max_likeliest, std::ssize(order));
  std::ranges::partial_sort(order, order.begin() + most, [&](std::int32_t a, std::int32_t b) {
    const double pa = probabilities[static_cast<std::size_t>(a)],
                 pb = probabilities[static_cast<std::size_t>(b)];
    return pa != pb ? pa > pb : a < b;
  });
  double reached = 0;
  for (std::int64_t i = 0; i < most && reached < likeliest_share; ++i) {
    add(order[static_cast<std::size_t>(i)]);
    reached += found.back().probability;
  }
  return found;
}

// The nodes whose edges are known, and all of their edges.
class Expansion {
 public:
  Expansion(const AttributionEdges& edges, const std::vector<ExplainedLogit>& logits)
      : edges_(edges),
        sources_(edges.sources().count()),
        is_expanded_(static_cast<std::size_t>(sources_)) {
    double total = 0;
    for (const ExplainedLogit& logit : logits) total += logit.probability;
    std::vector<GraphTarget> targets;
    for (const ExplainedLogit& logit : logits) {
      targets.push_back({.kind = NodeKind::logit, .number = logit.token});
      weights_.push_back(logit.probability / std::max(total, tiny));
    }
    std::fill_n(is_expanded_.begin(), edges.positions(), true);
    std::fill_n(is_expanded_.rbegin(), edges.sources().errors, true);
    add(targets);
  }

  void add_units(std::int64_t most) {
    const auto all =
        weights_.size() + static_cast<std::size_t>(std::min(most, edges_.sources().units));
    targets_.reserve(all);
    kept_.reserve(all / static_cast<std::size_t>(nodes_of_one_pass(edges_.positions())) + 2);
    rows_.reserve(all);
    totals_.reserve(all);
    biases_.reserve(all);
    while (units() < most) {
      const std::vector<std::int64_t> best =
          most_influential(std::min(max_together, most - units()));
      if (best.empty()) break;
      std::vector<GraphTarget> targets;
      for (const std::int64_t source : best) {
        is_expanded_[static_cast<std::size_t>(source)] = true;
        targets.push_back(edges_.unit_of(source));
      }
      add(targets);
    }
  }

  // (sources): the share of the logits' weights that reaches them over all edges.
  std::vector<double> influence() const {
    std::vector<double> found(static_cast<std::size_t>(sources_));
    std::vector<std::size_t> order(targets_.size());
    std::iota(order.begin(), order.end(), 0);
    // Logits are the first targets, and are deeper than all units.
    const auto depth = [&](std::size_t row) {
      return row < weights_.size() ? std::numeric_limits<std::int64_t>::max() : targets_[row].layer;
    };
    std::ranges::stable_sort(order, std::greater{}, depth);
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
      while (end < order.size() && depth(order[end]) == depth(order[begin])) ++end;
      std::vector<double> carried;
      for (std::size_t i = begin; i < end; ++i) {
        carried.push_back(weight(order[i], found) / totals_[order[i]]);
      }
      parallel_ranges(sources_, 4096, [&](std::int64_t first, std::int64_t last) {
        for (std::size_t i = begin; i < end; ++i) {
          const std::span<const float> row = rows_[order[i]].span();
          const double share = carried[i - begin];
          for (auto s = static_cast<std::size_t>(first); s < static_cast<std::size_t>(last); ++s) {
            found[s] += share * std::abs(double{row[s]});
          }
        }
      });
    }
    return found;
  }

  // Of a target: its share of the logits' weights.
  double weight(std::size_t row, std::span<const double> influence) const {
    return row < weights_.size()
               ? weights_[row]
               : influence[static_cast<std::size_t>(edges_.source_of(targets_[row]))];
  }
  // The share of a target's edges that biases have.
  double of_bias(std::size_t row) const { return std::abs(biases_[row]) / totals_[row]; }

  std::size_t logits() const { return weights_.size(); }
  std::int64_t units() const { return std::ssize(targets_) - std::ssize(weights_); }
  const std::vector<GraphTarget>& targets() const { return targets_; }
  std::span<const float> row(std::size_t target) const { return rows_[target].span(); }
  double bias(std::size_t target) const { return biases_[target]; }
  bool is_expanded(std::int64_t source) const {
    return is_expanded_[static_cast<std::size_t>(source)];
  }

 private:
  void add(const std::vector<GraphTarget>& targets) {
    const std::int64_t together = nodes_of_one_pass(edges_.positions());
    for (std::int64_t begin = 0; begin < std::ssize(targets); begin += together) {
      const std::int64_t count = std::min(together, std::ssize(targets) - begin);
      const std::span<const GraphTarget> part(targets.data() + static_cast<std::ptrdiff_t>(begin),
                                              static_cast<std::size_t>(count));
      Tensor<float> found(Shape{count, sources_});
      std::vector<double> biases(part.size());
      edges_.into(part, found, biases);
      auto shared = std::make_shared<const Tensor<float>>(std::move(found));
      for (std::int64_t i = 0; i < count; ++i) {
        const View<const float> row = shared->view()[i];
        double total = std::abs(biases[static_cast<std::size_t>(i)]);
        for (const float value : row.span()) total += std::abs(double{value});
        rows_.push_back(row);
        totals_.push_back(std::max(total, tiny));
      }
      kept_.push_back(std::move(shared));
      biases_.insert(biases_.end(), biases.begin(), biases.end());
    }
    targets_.insert(targets_.end(), targets.begin(), targets.end());
  }

  // Neurons or features that are not expanded yet.
  std::vector<std::int64_t> most_influential(std::int64_t count) const {
    const std::vector<double> found = influence();
    const auto of = [&](std::int64_t source) { return found[static_cast<std::size_t>(source)]; };
    std::vector<std::int64_t> order;
    order.reserve(found.size());
    for (std::int64_t source = 0; source < sources_; ++source) {
      if (!is_expanded(source) && of(source) > 0) order.push_back(source);
    }
    count = std::min<std::int64_t>(count, std::ssize(order));
    std::ranges::partial_sort(order, order.begin() + count, [&](std::int64_t a, std::int64_t b) {
      return of(a) != of(b) ? of(a) > of(b) : a < b;
    });
    order.resize(static_cast<std::size_t>(count));
    return order;
  }

  const AttributionEdges& edges_;
  std::int64_t sources_;
  std::vector<char> is_expanded_;  // (sources)
  std::vector<double> weights_;    // of the logits
  std::vector<GraphTarget> targets_;
  std::vector<std::shared_ptr<const Tensor<float>>> kept_;
  std::vector<View<const float>> rows_;  // (sources), of each target
  std::vector<double> totals_;           // of a row, with its bias
  std::vector<double> biases_;
};

// Tokens, errors and neurons or features layer by layer, logits.
AttributionGraph graph_of(const AttributionEdges& edges, const Expansion& expansion,
                          const std::vector<ExplainedLogit>& logits,
                          std::span<const std::int32_t> tokens) {
  const std::vector<double> influence = expansion.influence();
  const auto of_source = [&](std::int64_t source) {
    return influence[static_cast<std::size_t>(source)];
  };
  AttributionGraph graph{.tokens = {tokens.begin(), tokens.end()}};
  std::vector<std::size_t> rows;      // of the targets, in the order of their nodes
  std::vector<std::int64_t> columns;  // of all nodes but the logits
  const std::size_t targets = expansion.targets().size();
  const std::size_t others =
      static_cast<std::size_t>(edges.positions() + edges.sources().errors) + targets;
  rows.reserve(targets);
  columns.reserve(others);
  graph.nodes.reserve(others);
  for (std::int64_t t = 0; t < edges.positions(); ++t) {
    graph.nodes.push_back({.kind = NodeKind::token,
                           .position = t,
                           .number = tokens[static_cast<std::size_t>(t)],
                           .influence = of_source(t)});
    columns.push_back(t);
  }
  for (std::int64_t i = 0; i < edges.sources().errors; ++i) {
    columns.push_back(edges.positions() + edges.sources().units + i);
    graph.nodes.push_back({.kind = NodeKind::error,
                           .layer = i / edges.positions(),
                           .position = i % edges.positions(),
                           .number = -1,
                           .influence = of_source(columns.back())});
  }
  for (std::size_t row = expansion.logits(); row < expansion.targets().size(); ++row) {
    rows.push_back(row);
  }
  std::ranges::sort(rows, {},
                    [&](std::size_t row) { return edges.source_of(expansion.targets()[row]); });
  for (const std::size_t row : rows) {
    const GraphTarget& unit = expansion.targets()[row];
    columns.push_back(edges.source_of(unit));
    graph.nodes.push_back({.kind = unit.kind,
                           .layer = unit.layer,
                           .position = unit.position,
                           .number = unit.number,
                           .value = edges.value(unit),
                           .read = edges.read(unit),
                           .bias = expansion.bias(row),
                           .influence = of_source(columns.back())});
  }
  for (std::size_t row = 0; row < logits.size(); ++row) {
    rows.push_back(row);
    graph.nodes.push_back({.kind = NodeKind::logit,
                           .layer = edges.layers(),
                           .position = edges.positions() - 1,
                           .number = logits[row].token,
                           .value = logits[row].probability,
                           .read = edges.read(expansion.targets()[row]),
                           .bias = expansion.bias(row),
                           .influence = expansion.weight(row, influence)});
  }
  const std::size_t count = graph.nodes.size(), first = count - rows.size();
  std::vector<float> all(count * count);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> row = expansion.row(rows[i]);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      all[(first + i) * count + c] = row[static_cast<std::size_t>(columns[c])];
    }
  }
  graph.edges = Array({std::ssize(graph.nodes), std::ssize(graph.nodes)}, std::move(all));
  for (std::int64_t source = 0; source < std::ssize(influence); ++source) {
    if (!expansion.is_expanded(source)) graph.left_out += of_source(source);
  }
  for (const std::size_t row : rows) {
    graph.of_biases += expansion.weight(row, influence) * expansion.of_bias(row);
  }
  return graph;
}

// Nodes of these kinds, the most influential first.
std::vector<std::size_t> most_influential(const AttributionGraph& graph,
                                          std::initializer_list<NodeKind> kinds) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (std::ranges::find(kinds, graph.nodes[i].kind) != kinds.end()) found.push_back(i);
  }
  std::ranges::stable_sort(found, std::greater{},
                           [&](std::size_t i) { return graph.nodes[i].influence; });
  return found;
}

}  // namespace

std::int64_t graph_bytes(const Transformer& model, std::int64_t positions,
                         const GraphOptions& options) {
  const LayerTranscoders transcoders(options.transcoders, model);
  return bytes_of_sources(model,
                          GraphSources::expected(model.specification(), positions, transcoders),
                          options, transcoders);
}

GraphEstimate estimate_graph(const Transformer& model, std::int64_t positions,
                             const GraphOptions& options) {
  const LayerTranscoders transcoders(options.transcoders, model);
  require_options(model, options, transcoders);
  require(positions >= 1, ErrorCode::invalid_argument, "a text has at least one token, not {}",
          positions);
  require_positions_fit(model.specification(), positions);
  const GraphSources sources =
      GraphSources::expected(model.specification(), positions, transcoders);
  return {.bytes = bytes_of_sources(model, sources, options, transcoders),
          .seconds = graph_seconds(model, sources, options, transcoders)};
}

AttributionGraph attribution_graph(const Transformer& model, std::span<const std::int32_t> tokens,
                                   const GraphOptions& options) {
  const LayerTranscoders transcoders(options.transcoders, model);
  require_options(model, options, transcoders);
  require_text_fits(model.specification(), tokens);
  require_memory(model,
                 GraphSources::expected(model.specification(), std::ssize(tokens), transcoders),
                 options, transcoders);
  const RecordedPass pass(model, Texts{.source = {}, .target = {tokens.begin(), tokens.end()}});
  GraphSources sources =
      GraphSources::expected(model.specification(), pass.positions(), transcoders);
  const auto after_layer = [&](std::int64_t active) {
    if (options.poll) options.poll();
    sources.units = active;
    require_memory(model, sources, options, transcoders);
  };
  const AttributionEdges edges(pass, transcoders, options.baseline, options.poll, after_layer);
  const std::vector<ExplainedLogit> logits =
      explained_logits(edges.probabilities(), options.logits);
  Expansion expansion(edges, logits);
  expansion.add_units(options.max_neurons);
  AttributionGraph graph = graph_of(edges, expansion, logits, tokens);
  graph.transcoders = options.transcoders;
  return graph;
}

NodeEdges edges_into(const Transformer& model, std::span<const std::int32_t> tokens,
                     const std::vector<GraphTarget>& targets, LogitBaseline baseline,
                     const std::vector<SparseDictionary>& transcoders) {
  const LayerTranscoders of_layers(transcoders, model);
  require_attribution_graph(model, of_layers);
  require_text_fits(model.specification(), tokens);
  const RecordedPass pass(model, Texts{.source = {}, .target = {tokens.begin(), tokens.end()}});
  const AttributionEdges edges(pass, of_layers, baseline);
  const std::int64_t count = std::ssize(targets), sources = edges.sources().count();
  NodeEdges found{.edges = Array({count, sources},
                                 std::vector<float>(static_cast<std::size_t>(count * sources))),
                  .biases = std::vector<double>(targets.size()),
                  .reads = {}};
  edges.into(targets, {found.edges.data(), {count, sources}}, found.biases);
  for (const GraphTarget& target : targets) found.reads.push_back(edges.read(target));
  for (std::int64_t i = 0; !of_layers.empty() && i < edges.sources().units; ++i) {
    found.features.push_back(edges.unit_of(edges.positions() + i));
  }
  return found;
}

std::vector<std::size_t> nodes_of_kind(const AttributionGraph& graph, NodeKind kind) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind == kind) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> most_influential_units(const AttributionGraph& graph) {
  return most_influential(graph, {NodeKind::neuron, NodeKind::feature});
}

std::vector<std::size_t> targets_first(const AttributionGraph& graph) {
  std::vector<std::size_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t i) { return graph.nodes[i].layer; });
  return order;
}

void require_whole(const AttributionGraph& graph) {
  const auto count = std::ssize(graph.nodes);
  require(graph.edges.shape() == std::vector<std::int64_t>{count, count},
          ErrorCode::invalid_argument,
          "the edges of {} nodes have the shape ({}), expected ({}, {})", count,
          fmt::join(graph.edges.shape(), ", "), count, count);
}

std::vector<double> signed_shares(const AttributionGraph& graph) {
  require_whole(graph);
  const std::size_t count = graph.nodes.size();
  std::vector<double> shares(count * count);
  for (std::size_t target = 0; target < count; ++target) {
    double total = std::abs(graph.nodes[target].bias);
    for (std::size_t i = 0; i < count; ++i) total += std::abs(double{graph.edge(target, i)});
    for (std::size_t i = 0; i < count; ++i) {
      shares[target * count + i] = graph.edge(target, i) / std::max(total, tiny);
    }
  }
  return shares;
}

std::vector<GraphPath> strongest_paths(const AttributionGraph& graph, std::size_t count,
                                       std::int64_t logit) {
  const std::vector<std::size_t> logits = nodes_of_kind(graph, NodeKind::logit);
  require(!logits.empty() && (logit == -1 || std::ranges::find(logits, static_cast<std::size_t>(
                                                                           logit)) != logits.end()),
          ErrorCode::invalid_argument, "node {} is no logit of the graph: these are {}", logit,
          fmt::join(logits, ", "));
  const std::size_t end = logit == -1 ? logits.front() : static_cast<std::size_t>(logit);
  const std::size_t size = graph.nodes.size();
  const std::vector<double> shares = signed_shares(graph);
  std::vector<double> best(size);
  std::vector<std::optional<std::size_t>> following(size);
  best[end] = 1;
  for (const std::size_t target : targets_first(graph)) {
    for (std::size_t source = 0; source < size; ++source) {
      const double reached = best[target] * std::abs(shares[target * size + source]);
      if (!(reached > best[source])) continue;
      best[source] = reached;
      following[source] = target;
    }
  }
  std::vector<std::size_t> tokens = nodes_of_kind(graph, NodeKind::token);
  std::ranges::stable_sort(tokens, std::greater{}, [&](std::size_t i) { return best[i]; });
  std::vector<GraphPath> paths;
  for (const std::size_t token : tokens) {
    if (paths.size() == count || best[token] <= 0) break;
    GraphPath path{.nodes = {token}, .share = best[token]};
    while (const auto next = following[path.nodes.back()]) {
      path.weights.push_back(graph.edge(*next, path.nodes.back()));
      path.nodes.push_back(*next);
    }
    paths.push_back(std::move(path));
  }
  return paths;
}

AttributionGraph pruned(const AttributionGraph& graph, const GraphPruning& pruning) {
  for (const auto& [value, name] :
       {std::pair{pruning.share, "share"}, std::pair{pruning.edge_share, "edge_share"}}) {
    require(value > 0 && value <= 1, ErrorCode::invalid_argument,
            "{} is {}, expected more than 0 and at most 1", name, value);
  }
  require(pruning.min_token_share >= 0 && pruning.min_token_share < 1, ErrorCode::invalid_argument,
          "min_token_share is {}, expected 0 to less than 1", pruning.min_token_share);
  std::vector<char> is_kept(graph.nodes.size(), 1);
  const auto influence_of = [&](const std::vector<std::size_t>& nodes) {
    double sum = 0;
    for (const std::size_t i : nodes) sum += graph.nodes[i].influence;
    return sum;
  };
  const std::vector<std::size_t> tokens = nodes_of_kind(graph, NodeKind::token);
  const double of_tokens = influence_of(tokens);
  for (const std::size_t i : tokens) {
    is_kept[i] = graph.nodes[i].influence >= pruning.min_token_share * of_tokens;
  }
  const std::vector<std::size_t> inner =
      most_influential(graph, {NodeKind::neuron, NodeKind::feature, NodeKind::error});
  const double enough = pruning.share * influence_of(inner);
  double reached = 0;
  for (const std::size_t i : inner) {
    is_kept[i] = reached < enough;
    if (is_kept[i]) reached += graph.nodes[i].influence;
  }
  std::vector<std::size_t> order;
  AttributionGraph small{.tokens = graph.tokens,
                         .left_out = graph.left_out,
                         .of_biases = graph.of_biases,
                         .transcoders = graph.transcoders};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_kept[i]) continue;
    order.push_back(i);
    small.nodes.push_back(graph.nodes[i]);
  }
  // What each edge carries of the logits' weights.
  const std::vector<double> shares = signed_shares(graph);
  std::vector<float> edges;
  std::vector<double> carried;
  for (const std::size_t target : order) {
    const GraphNode& node = graph.nodes[target];
    const double weight = node.kind == NodeKind::logit ? 1 : node.influence;
    for (const std::size_t source : order) {
      edges.push_back(graph.edge(target, source));
      carried.push_back(weight * std::abs(shares[target * graph.nodes.size() + source]));
    }
  }
  std::vector<double> sorted = carried;
  std::ranges::sort(sorted, std::greater{});
  const double needed = pruning.edge_share * std::accumulate(sorted.begin(), sorted.end(), 0.0);
  double least = 0, sum = 0;
  for (const double value : sorted) {
    least = value;
    if ((sum += value) >= needed) break;
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (carried[i] < least) edges[i] = 0;
  }
  small.edges = Array({std::ssize(order), std::ssize(order)}, std::move(edges));
  return small;
}

}  // namespace heed
