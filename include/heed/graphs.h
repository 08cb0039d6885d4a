// Attribution graphs: which tokens and neurons a prediction is made of, and of what these are
// (Ameisen et al. 2025; Dunefsky, Chlenski and Nanda 2024). Where transcoders are given, their
// features take the place of neurons, and what they leave out is a node as well; without them no
// error is left over.
//
//   heed::AttributionGraph graph = heed::attribution_graph(model, tokens);
//   graph = heed::attribution_graph(model, tokens, {.transcoders = SparseDictionary::load(path)});
//   for (const heed::GraphPath& path : heed::strongest_paths(graph)) { ... }
//   heed::WordCauses causes = heed::word_causes(model, tokens);  // measured by switching off
//   causes = heed::word_causes(model, tokens, {.transcoders = SparseDictionary::load("starter")});
//
// A node is a token at its position, a neuron or feature at a position, an error (what the
// transcoders of a layer leave out at a position), or a logit. An edge is the value of its source
// times the gradient of what its target reads, along all ways on which no other neuron or feature
// lies, with attention patterns and the deviations of norms held constant: the edges into a node
// and the part of biases add up to what it reads.
//
// Functions throw Error{unsupported} for models with gated neurons (unless transcoders replace
// them), norms after their branches, or a soft cap of logits, and for models that hooks or edits
// change; Error{invalid_argument} for transcoders of another width or point than what feed-forward
// of a layer reads and gives, for a layer without one or with two, and as those of Model do.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heed/array.h"
#include "heed/features.h"
#include "heed/heed.h"

namespace heed {

enum class NodeKind { token, neuron, logit, feature, error };
inline const char* node_kind_name(NodeKind kind) {
  constexpr const char* names[] = {"token", "neuron", "logit", "feature", "error"};
  return names[static_cast<int>(kind)];
}

struct GraphNode {
  NodeKind kind = NodeKind::token;
  std::int64_t layer = -1;    // −1 of a token, the number of layers of a logit
  std::int64_t position = 0;  // of a logit, the last one
  std::int64_t number = 0;    // the token, or the neuron or feature of the layer; of an error −1
  // A neuron or feature after its activation, the probability of a logit, of others 1.
  double value = 1;
  // A neuron or feature before its activation, a logit less its baseline, of others 1.
  double read = 1;
  double bias = 0;       // the part of `read` that biases make
  double influence = 0;  // on the logits, of all that their edges carry; of a logit its weight
};

// What is subtracted from an explained logit.
enum class LogitBaseline {
  mean,          // of all logits
  alternatives,  // the mean of all other logits, weighted by their probabilities
};

struct GraphOptions {
  // Tokens whose logits are explained; empty: the likeliest, up to ten, that have 95 % together.
  std::vector<std::int32_t> logits{};
  LogitBaseline baseline = LogitBaseline::mean;
  // One for each layer, in any order: the model's features in the place of its neurons. Those
  // across layers are taken as well.
  std::vector<SparseDictionary> transcoders{};
  // Neurons, or features, that become nodes: those of the largest influence, chosen up to 64 at a
  // time by what is known until then.
  std::int64_t max_neurons = 256;
  std::int64_t max_bytes = std::int64_t{1} << 30;  // of memory while the graph is computed
  // Called between layers, on the thread that called; an exception ends the work and is rethrown.
  std::function<void()> poll{};
};

// What a graph takes: memory in all, and time as one short pass suggests. Of transcoders that do
// not say how many features are active (all but TopK) it is a guess, 128 a position.
struct GraphEstimate {
  std::int64_t bytes = 0;
  double seconds = 0;
};
GraphEstimate estimate_graph(const Model& model, std::int64_t positions,
                             const GraphOptions& options = {});

struct AttributionGraph {
  std::vector<std::int32_t> tokens;
  std::vector<GraphNode> nodes;  // tokens, errors and neurons or features layer by layer, logits
  Array edges;                   // (nodes, nodes): rows by target, columns by source
  double left_out = 0;           // share of the logits' edges that ends in units that are no nodes
  double of_biases = 0;          // share of them that ends in biases
  std::vector<SparseDictionary> transcoders{};  // whose features are nodes

  float edge(std::size_t target, std::size_t source) const {
    return edges[target * nodes.size() + source];
  }
};

// Of the token after a text. One forward pass, and a backward pass for all nodes chosen together.
// Throws Error{invalid_argument} before work begins, with an estimate of memory and time, where
// more memory than options.max_bytes is needed; of transcoders that do not say how many features
// are active, while these are found, layer by layer.
AttributionGraph attribution_graph(const Model& model, std::span<const std::int32_t> tokens,
                                   const GraphOptions& options = {});

// A way from a token to a logit.
struct GraphPath {
  std::vector<std::size_t> nodes;  // of the graph
  std::vector<float> weights;      // of its edges
  // The product of the shares of its edges in the edges between nodes into their targets, biases
  // included.
  double share = 0;
};
// The strongest ways to a logit (a node; −1: the first one), at most one from each token. Throws
// Error{invalid_argument} for a node that is no logit.
std::vector<GraphPath> strongest_paths(const AttributionGraph& graph, std::size_t count = 3,
                                       std::int64_t logit = -1);

struct GraphPruning {
  // Of the influence of all neurons, or features and errors, that the kept ones have.
  double share = 0.8;
  double edge_share = 0.98;    // of what edges carry that the kept ones do
  double min_token_share = 0;  // of the influence of all tokens that a token needs to be kept
};
// Throws Error{invalid_argument} for shares out of range.
AttributionGraph pruned(const AttributionGraph& graph, const GraphPruning& pruning = {});

// What the first logit of the graph, less the mean of all, gains where a neuron is switched off, or
// what a feature writes is taken away, in the model itself with nothing held constant: of the
// neurons or features of the largest influence.
struct NodeEffect {
  std::size_t node = 0;
  double change = 0;
};
std::vector<NodeEffect> switch_off_effects(const Model& model, const AttributionGraph& graph,
                                           std::size_t count = 10);

// The edges into single nodes.
struct GraphTarget {
  NodeKind kind = NodeKind::logit;  // logit, and neuron or, with transcoders, feature
  std::int64_t layer = 0;           // of a neuron or feature, as its position
  std::int64_t position = 0;
  std::int64_t number = 0;  // the token, neuron or feature
};
struct NodeEdges {
  // (targets, T + L·T·F): from tokens, then neurons (L, T, F); or with A active features
  // (targets, T + A + L·T): from tokens, features, then errors (L, T).
  Array edges;
  std::vector<double> biases;           // (targets): what biases add
  std::vector<double> reads;            // (targets): what the target reads, the sum of both
  std::vector<GraphTarget> features{};  // (A)
};
NodeEdges edges_into(const Model& model, std::span<const std::int32_t> tokens,
                     const std::vector<GraphTarget>& targets,
                     LogitBaseline baseline = LogitBaseline::mean,
                     const std::vector<SparseDictionary>& transcoders = {});

// Why a word is predicted, measured.
struct CauseOptions {
  std::size_t paths = 3;
  // As GraphOptions: features in the place of neurons.
  std::vector<SparseDictionary> transcoders{};
  // Or features, of the graph; fewer where memory does not suffice, at least 16.
  std::int64_t max_neurons = 128;
  std::size_t controls = 8;  // for each path
  std::int64_t max_bytes = std::int64_t{256} << 20;
  std::function<void()> poll{};
};
// From a token to the word by neurons, or features, of one block at one position: the graph's units
// there that raise the word over its alternatives and read more from this token than from any
// other.
struct CausePath {
  std::int64_t token = 0;           // the position of the token
  std::int64_t layer = 0;           // of the units
  std::int64_t position = 0;        // of the units
  std::vector<std::int64_t> units;  // the most influential first
  std::vector<double> activations;  // of the units
  double share = 0;                 // of the influence of the graph's nodes on the word
  // The word's probability with the neurons switched off; or without what the features write, while
  // what their transcoder leaves out stays.
  double without = 0;
  std::int32_t instead = 0;  // the likeliest token then
  double instead_probability = 0;
  // The word's probability where as much is taken away in other directions: the same activations,
  // of as many other units of the block, drawn; of features scaled to the same length.
  std::vector<double> controls;

  // The control that moves the probability most.
  double strongest_control(double probability) const;
  // Whether switching the units off takes more of the probability than any control moves it, and at
  // least half a percentage point.
  bool is_cause(double probability) const;
};
struct WordCauses {
  std::int32_t token = 0;  // the likeliest after the text
  double probability = 0;
  NodeKind unit = NodeKind::neuron;  // or feature
  std::int64_t units = 0;            // of the graph
  std::vector<CausePath> paths;      // the strongest first, at most one from each token
};
WordCauses word_causes(const Model& model, std::span<const std::int32_t> tokens,
                       const CauseOptions& options = {});

// A graph as the viewers of circuit-tracer and Neuronpedia read it; neurons stand as features.
// `prompt`: the text; empty: the tokens' pieces.
std::string graph_json(const Model& model, const AttributionGraph& graph,
                       const std::string& prompt = "");

}  // namespace heed
