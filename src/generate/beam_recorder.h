// Writes down what one source's beam search looks at. Without a tree it does nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generate/beam_candidates.h"
#include "generate/beam_tree.h"

namespace heed {

// A candidate is called by its rank in its step; a hypothesis by its node in the tree.
class BeamRecorder {
 public:
  explicit BeamRecorder(BeamTree* tree);

  bool is_recording() const { return tree_ != nullptr; }

  // The candidates of one more step, of hypotheses with these nodes and log-probabilities.
  void begin_step(std::span<const BeamCandidate> candidates,
                  std::span<const std::int32_t> parent_nodes,
                  std::span<const double> log_probabilities);

  // The node of a candidate of this step; −1 without a tree.
  std::int32_t node(std::size_t rank) const {
    return tree_ == nullptr ? -1 : first_ + static_cast<std::int32_t>(rank);
  }
  // What became of it.
  void set_fate(std::int32_t node, BeamFate fate);
  void add_hypothesis(std::int32_t node);

 private:
  BeamTree* tree_;
  std::int32_t step_ = 0;
  std::int32_t first_ = 0;  // node of this step's first candidate
};

}  // namespace heed
