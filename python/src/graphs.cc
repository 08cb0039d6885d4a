// Attribution graphs.
#include "heed/graphs.h"

#include <array>

#include "bindings.h"

namespace heed::python {
namespace {

LogitBaseline baseline_named(const std::string& name) {
  if (name == "mean") return LogitBaseline::mean;
  if (name == "alternatives") return LogitBaseline::alternatives;
  throw Error(ErrorCode::invalid_argument,
              "baseline is '" + name + "', expected mean or alternatives");
}

GraphOptions graph_options(std::vector<std::int32_t> logits, std::int64_t max_neurons,
                           const std::string& baseline, std::vector<SparseDictionary> transcoders) {
  return {.logits = std::move(logits),
          .baseline = baseline_named(baseline),
          .transcoders = std::move(transcoders),
          .max_neurons = max_neurons,
          .poll = SignalPoll{}};
}

// (kind, layer, position, number, value, read, bias, influence)
py::list node_tuples(const AttributionGraph& graph) {
  py::list nodes;
  for (const GraphNode& node : graph.nodes) {
    nodes.append(py::make_tuple(node_kind_name(node.kind), node.layer, node.position, node.number,
                                node.value, node.read, node.bias, node.influence));
  }
  return nodes;
}

void bind_graph(py::module_& module) {
  py::class_<AttributionGraph>(module, "AttributionGraph")
      .def_property_readonly("tokens", [](const AttributionGraph& graph) { return graph.tokens; })
      .def_property_readonly("nodes", &node_tuples)
      .def_property_readonly("edges",
                             [](const AttributionGraph& graph) { return array_of(graph.edges); })
      .def_readonly("left_out", &AttributionGraph::left_out)
      .def_readonly("of_biases", &AttributionGraph::of_biases)
      // [(nodes, weights, share)]
      .def("paths",
           [](const AttributionGraph& graph, std::size_t count, std::int64_t logit) {
             py::list paths;
             for (const GraphPath& path : strongest_paths(graph, count, logit)) {
               paths.append(py::make_tuple(path.nodes, path.weights, path.share));
             }
             return paths;
           })
      .def("pruned",
           [](const AttributionGraph& graph, double share, double edge_share,
              double min_token_share) {
             return pruned(graph, {share, edge_share, min_token_share});
           })
      .def("effects",
           [](const AttributionGraph& graph, const ModelHandle& handle, std::size_t count) {
             const auto model = handle.get();
             std::vector<std::pair<std::size_t, double>> found;
             for (const NodeEffect& effect :
                  unlocked([&] { return switch_off_effects(*model, graph, count); })) {
               found.emplace_back(effect.node, effect.change);
             }
             return found;
           })
      .def("json",
           [](const AttributionGraph& graph, const ModelHandle& handle, const std::string& prompt) {
             return graph_json(*handle.get(), graph, prompt);
           });
}

}  // namespace

void bind_graphs(py::module_& module) {
  bind_graph(module);
  module.def("attribution_graph",
             [](const ModelHandle& handle, const TokenArray& tokens,
                std::vector<std::int32_t> logits, std::int64_t max_neurons,
                const std::string& baseline, std::vector<SparseDictionary> transcoders) {
               const auto model = handle.get();
               const std::vector<std::int32_t> all = vector_of(tokens);
               const GraphOptions options =
                   graph_options(std::move(logits), max_neurons, baseline, std::move(transcoders));
               return unlocked([&] { return attribution_graph(*model, all, options); });
             });
  module.def("estimate_graph", [](const ModelHandle& handle, std::int64_t positions,
                                  std::int64_t logits, std::int64_t max_neurons,
                                  std::vector<SparseDictionary> transcoders) {
    const auto model = handle.get();
    const std::int64_t vocabulary = model->dimensions().vocabulary;
    if (logits < 0 || logits > vocabulary) {
      throw Error(ErrorCode::invalid_argument, "logits is " + std::to_string(logits) +
                                                   ", expected 0 to " + std::to_string(vocabulary));
    }
    const GraphOptions options =
        graph_options(std::vector<std::int32_t>(static_cast<std::size_t>(logits)), max_neurons,
                      "mean", std::move(transcoders));
    const GraphEstimate found =
        unlocked([&] { return estimate_graph(*model, positions, options); });
    return std::make_pair(found.bytes, found.seconds);
  });
  // (edges, biases, reads, active features [(layer, position, feature)]) of logits
  // [(−1, −1, token)] and neurons or, with transcoders, features [(layer, position, number)].
  module.def("edges_into",
             [](const ModelHandle& handle, const TokenArray& tokens,
                const std::vector<std::array<std::int64_t, 3>>& targets,
                const std::string& baseline, const std::vector<SparseDictionary>& transcoders) {
               const auto model = handle.get();
               const std::vector<std::int32_t> all = vector_of(tokens);
               const LogitBaseline from = baseline_named(baseline);
               const NodeKind unit = transcoders.empty() ? NodeKind::neuron : NodeKind::feature;
               std::vector<GraphTarget> wanted;
               for (const auto& [layer, position, number] : targets) {
                 wanted.push_back({layer < 0 ? NodeKind::logit : unit, layer, position, number});
               }
               const NodeEdges found =
                   unlocked([&] { return edges_into(*model, all, wanted, from, transcoders); });
               std::vector<std::array<std::int64_t, 3>> features;
               for (const GraphTarget& each : found.features) {
                 features.push_back({each.layer, each.position, each.number});
               }
               return py::make_tuple(array_of(found.edges), found.biases, found.reads, features);
             });
  // (token, probability, the graph's neurons or features, [(token's position, layer, position,
  // neurons or features, activations, share, without, instead, its probability, controls, strongest
  // control, whether it is a cause)])
  module.def("word_causes", [](const ModelHandle& handle, const TokenArray& tokens,
                               std::size_t paths, std::int64_t max_neurons, std::size_t controls,
                               std::vector<SparseDictionary> transcoders) {
    const auto model = handle.get();
    const std::vector<std::int32_t> all = vector_of(tokens);
    const CauseOptions options{.paths = paths,
                               .transcoders = std::move(transcoders),
                               .max_neurons = max_neurons,
                               .controls = controls,
                               .poll = SignalPoll{}};
    const WordCauses found = unlocked([&] { return word_causes(*model, all, options); });
    py::list causes;
    for (const CausePath& path : found.paths) {
      causes.append(py::make_tuple(
          path.token, path.layer, path.position, path.units, path.activations, path.share,
          path.without, path.instead, path.instead_probability, path.controls,
          path.strongest_control(found.probability), path.is_cause(found.probability)));
    }
    return py::make_tuple(found.token, found.probability, found.units, causes);
  });
}

}  // namespace heed::python
