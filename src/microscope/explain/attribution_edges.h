// Edges of attribution graphs: a backward pass from tokens' logits and neurons, or features of
// transcoders, in which attention patterns, the deviations of norms and all other neurons or
// features are constants.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "heed/graphs.h"
#include "microscope/explain/layer_transcoders.h"
#include "microscope/traces/recorded_pass.h"
#include "tensor/tensor.h"

namespace heed {

// Throws Error{unsupported} for a model whose predictions are not sums of neurons, or features of
// transcoders, and tokens.
void require_attribution_graph(const Transformer& model, const LayerTranscoders& transcoders);

// How many nodes there may be, in this order: tokens (T); neurons (L, T, F), or active features,
// layer by layer and position by position; with transcoders, what these leave out (L, T).
struct GraphSources {
  std::int64_t positions = 0;
  std::int64_t units = 0;  // neurons or features
  std::int64_t errors = 0;

  std::int64_t count() const { return positions + units + errors; }
  // Before a pass; of features as many as are expected.
  static GraphSources expected(const StackSpecification& stack, std::int64_t positions,
                               const LayerTranscoders& transcoders);
};

class AttributionEdges {
 public:
  // Of a pass over one text that keeps every block. Borrows both. `after_layer` is told how many
  // features are active so far.
  AttributionEdges(const RecordedPass& pass, const LayerTranscoders& transcoders,
                   LogitBaseline baseline = LogitBaseline::mean, std::function<void()> poll = {},
                   const std::function<void(std::int64_t active)>& after_layer = {});

  // Memory of into(), of so many targets, `logits` of them logits, beside its results, and of what
  // the constructor keeps: at most, but for the scratch of products.
  static double bytes_needed(const Transformer& model, std::int64_t positions, std::int64_t targets,
                             std::int64_t logits, const LayerTranscoders& transcoders);
  // Multiplications of into(), of one target.
  static double work(const StackSpecification& stack, std::int64_t positions,
                     const LayerTranscoders& transcoders);

  std::int64_t positions() const { return positions_; }
  std::int64_t layers() const { return stack_.layers; }
  const GraphSources& sources() const { return sources_; }
  // Of a neuron, or an active feature.
  std::int64_t source_of(const GraphTarget& unit) const;
  GraphTarget unit_of(std::int64_t source) const;
  // After its activation.
  float value(const GraphTarget& unit) const;
  // What a target reads.
  double read(const GraphTarget& target) const;
  // Of the token after the text, (V).
  const std::vector<double>& probabilities() const { return probabilities_; }

  // edges (targets, sources), and what biases add (targets). Throws Error{invalid_argument} for a
  // target that the model or the text does not have.
  void into(std::span<const GraphTarget> targets, View<float> edges,
            std::span<double> biases) const;

 private:
  class Backward;

  static TranscodedPass::Feature feature_of(const GraphTarget& target) {
    return {target.layer, target.position, target.number};
  }
  void require_target(const GraphTarget& target) const;
  // (V): of the logits, in what the node of a token reads.
  void fill_logit_weights(std::int64_t token, std::span<float> weights) const;

  const RecordedPass& pass_;
  const StackSpecification& stack_;
  LogitBaseline baseline_;
  std::function<void()> poll_;
  std::int64_t positions_;
  std::unique_ptr<TranscodedPass> transcoded_;  // null: of neurons
  GraphSources sources_;
  std::vector<float> logits_;  // of the token after the text
  std::vector<double> probabilities_;
};

}  // namespace heed
