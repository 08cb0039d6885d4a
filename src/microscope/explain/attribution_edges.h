// Edges of attribution graphs: a backward pass from tokens' logits and neurons in which attention
// patterns, the deviations of norms and all other neurons are constants.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heed/graphs.h"
#include "microscope/traces/recorded_pass.h"
#include "tensor/tensor.h"

namespace heed {

// Throws Error{unsupported} for a model whose predictions are not sums of neurons and tokens.
void require_attribution_graph(const Transformer& model);

class AttributionEdges {
 public:
  // Of a pass over one text that keeps every block. Borrows it.
  explicit AttributionEdges(const RecordedPass& pass, LogitBaseline baseline = LogitBaseline::mean,
                            std::function<void()> poll = {});

  // Sources: tokens (T), then neurons (L, T, F).
  static std::int64_t source_count(const StackSpecification& stack, std::int64_t positions);
  // Memory of into(), of so many targets, beside its results.
  static std::int64_t bytes_needed(const StackSpecification& stack, std::int64_t positions,
                                   std::int64_t targets);
  // Multiplications of into(), of one target.
  static double work(const StackSpecification& stack, std::int64_t positions);

  std::int64_t positions() const { return positions_; }
  std::int64_t layers() const { return stack_.layers; }
  std::int64_t sources() const { return source_count(stack_, positions_); }
  std::int64_t source_of(const GraphTarget& neuron) const;
  GraphTarget neuron_of(std::int64_t source) const;
  // A neuron after its activation.
  float value(const GraphTarget& neuron) const;
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

  void require_target(const GraphTarget& target) const;
  // (V): of the logits, in what the node of a token reads.
  void fill_logit_weights(std::int64_t token, std::span<float> weights) const;

  const RecordedPass& pass_;
  const StackSpecification& stack_;
  LogitBaseline baseline_;
  std::function<void()> poll_;
  std::int64_t positions_;
  std::vector<float> logits_;  // of the token after the text
  std::vector<double> probabilities_;
};

}  // namespace heed
