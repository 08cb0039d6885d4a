// What a beam search of one source looked at: every candidate of every step, as a tree.
#pragma once

#include <cstdint>
#include <vector>

namespace heed {

enum class BeamFate {
  kept,      // went on to the next step, or was cut off at the longest length as a hypothesis
  dropped,   // did not: others were likelier, or the search was over
  finished,  // ended its hypothesis with the end token
};

struct BeamNode {
  std::int32_t parent = -1;    // the node before; −1: this is the start
  std::int32_t step = 0;       // tokens up to this one; 0: the start
  std::int32_t token = -1;     // −1: the start
  double log_probability = 0;  // of the token after those before it
  double sum = 0;              // of all tokens up to this one
  BeamFate fate = BeamFate::dropped;
};

struct BeamTree {
  // The start, then the candidates of each step, the likeliest first: at most twice the beams.
  std::vector<BeamNode> nodes;
  // The last node of each hypothesis that was found, the best first.
  std::vector<std::int32_t> hypotheses;

  // The tokens from the start to a node.
  std::vector<std::int32_t> tokens_to(std::int32_t node) const;
};

}  // namespace heed
