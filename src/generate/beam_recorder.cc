#include "generate/beam_recorder.h"

namespace heed {

BeamRecorder::BeamRecorder(BeamTree* tree) : tree_(tree) {
  if (tree_ == nullptr) return;
  *tree_ = {};
  tree_->nodes.push_back({.fate = BeamFate::kept});
}

void BeamRecorder::begin_step(std::span<const BeamCandidate> candidates,
                              std::span<const std::int32_t> parent_nodes,
                              std::span<const double> log_probabilities) {
  if (tree_ == nullptr) return;
  ++step_;
  first_ = static_cast<std::int32_t>(std::ssize(tree_->nodes));
  for (const BeamCandidate& candidate : candidates) {
    const auto parent = static_cast<std::size_t>(candidate.parent);
    tree_->nodes.push_back(
        {.parent = parent_nodes[parent],
         .step = step_,
         .token = candidate.token,
         .log_probability = candidate.log_probability - log_probabilities[parent],
         .sum = candidate.log_probability});
  }
}

void BeamRecorder::set_fate(std::int32_t node, BeamFate fate) {
  if (tree_ != nullptr) tree_->nodes[static_cast<std::size_t>(node)].fate = fate;
}

void BeamRecorder::add_hypothesis(std::int32_t node) {
  if (tree_ != nullptr) tree_->hypotheses.push_back(node);
}

}  // namespace heed
