// The hypotheses of one source during a beam search.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "generate/beam_candidates.h"
#include "generate/beam_search.h"

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

// What all sources of a search have in common.
struct BeamRules {
  std::int64_t beams;
  double length_penalty;
  std::int32_t start;  // what the decoder reads first
  std::int32_t first;  // what every hypothesis begins with, at no cost; −1: anything
  std::int32_t last;   // with what one of the maximum length ends, at no cost; −1: anything
  std::vector<std::int32_t> ends;
  AllowedTokens allowed;

  double score(double log_probability, std::int64_t length) const;
  bool ends_with(std::int32_t token) const { return std::ranges::find(ends, token) != ends.end(); }
};

class BeamSource {
 public:
  // Begins with one hypothesis of no tokens. `tree`, if any, receives what the search looks at.
  BeamSource(std::int64_t index, std::int64_t max_length, const BeamRules& rules,
             BeamTree* tree = nullptr);

  std::int64_t index() const { return index_; }  // of the source
  std::int64_t width() const { return std::ssize(running_); }
  bool is_done() const { return running_.empty(); }

  // The last token of each hypothesis that goes on, in the order of their rows.
  template <class Put>
  void for_each_last_token(Put&& put) const {
    for (const Running& hypothesis : running_) put(last_token(hypothesis));
  }

  // Extends the hypotheses by a token each, given the logits (width, V) after their last ones.
  void advance(View<const float> logits);

  // The hypothesis that each present one continues, by its row before the last advance().
  template <class Put>
  void for_each_parent(Put&& put) const {
    for (const Running& hypothesis : running_) put(hypothesis.parent);
  }

  std::vector<TokenHypothesis> results(std::int64_t n_best);  // once, when done

 private:
  // Hypotheses share their beginnings: each token knows the one before it.
  struct Node {
    std::int32_t token;
    std::int32_t before;  // index in nodes_; −1: the first
  };
  struct Running {
    double log_probability;
    std::int32_t node;  // of the last token; −1: none yet
    std::int32_t parent;
    std::int32_t recorded;  // its node in the tree
  };
  struct Ended {
    double log_probability;
    double score;
    std::int32_t node;
    std::int32_t recorded;
    bool finished;
  };

  std::int32_t last_token(const Running& hypothesis) const {
    return hypothesis.node < 0 ? rules_->start
                               : nodes_[static_cast<std::size_t>(hypothesis.node)].token;
  }
  void find_next(View<const float> logits);
  void force_last();
  Running extended(std::size_t rank);
  void end(const Running& hypothesis, BeamFate fate);
  void end_all();
  void drop_all();
  void record_step();
  bool can_improve() const;
  void keep_rows();

  const BeamRules* rules_;
  std::int64_t index_;
  std::int64_t max_length_;
  std::int64_t length_ = 0;  // tokens of every running hypothesis
  std::vector<Node> nodes_;
  std::vector<Running> running_;  // in the order of their rows
  std::vector<Running> next_;
  std::vector<Ended> ended_;  // the best first, at most `beams`
  std::vector<double> log_probabilities_;
  std::vector<BeamCandidate> candidates_;
  BeamRecorder recorder_;
};

}  // namespace heed
