// Attribution graphs (heed/graphs.h): the neurons or features of the largest influence become
// nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/graphs.h"
#include "model/transformer.h"

namespace heed {

// Throws Error{unsupported} as attribution_graph(), and Error{invalid_argument} for fewer than one
// neuron or feature and for a text that does not fit the model.
GraphEstimate estimate_graph(const Transformer& model, std::int64_t positions,
                             const GraphOptions& options);

// Memory of attribution_graph().
std::int64_t graph_bytes(const Transformer& model, std::int64_t positions,
                         const GraphOptions& options);

AttributionGraph attribution_graph(const Transformer& model, std::span<const std::int32_t> tokens,
                                   const GraphOptions& options);

NodeEdges edges_into(const Transformer& model, std::span<const std::int32_t> tokens,
                     const std::vector<GraphTarget>& targets, LogitBaseline baseline,
                     const std::vector<SparseDictionary>& transcoders = {});

// Throws Error{invalid_argument} for edges that are not (nodes, nodes).
void require_whole(const AttributionGraph& graph);

// (nodes, nodes): each edge by all edges between nodes into its target and biases, with its sign.
// Throws as require_whole.
std::vector<double> signed_shares(const AttributionGraph& graph);

// The numbers of the nodes of a kind.
std::vector<std::size_t> nodes_of_kind(const AttributionGraph& graph, NodeKind kind);
// Of the neurons or features, the most influential first.
std::vector<std::size_t> most_influential_units(const AttributionGraph& graph);
// The nodes, targets before their sources.
std::vector<std::size_t> targets_first(const AttributionGraph& graph);

}  // namespace heed
