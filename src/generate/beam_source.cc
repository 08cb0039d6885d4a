#include "generate/beam_source.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

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

double BeamRules::score(double log_probability, std::int64_t length) const {
  return log_probability / std::pow(static_cast<double>(length), length_penalty);
}

BeamSource::BeamSource(std::int64_t index, std::int64_t max_length, const BeamRules& rules,
                       BeamTree* tree)
    : rules_(&rules), index_(index), max_length_(max_length), recorder_(tree) {
  running_.push_back({.log_probability = 0, .node = -1, .parent = 0, .recorded = 0});
}

// The likeliest continuations: a first token that is forced is the only one, and certain.
void BeamSource::find_next(View<const float> logits) {
  log_probabilities_.clear();
  for (const Running& hypothesis : running_) {
    log_probabilities_.push_back(hypothesis.log_probability);
  }
  if (length_ == 0 && rules_->first >= 0) {
    candidates_.assign(1, {.log_probability = 0, .token = rules_->first, .parent = 0});
    return;
  }
  if (length_ + 1 == max_length_ && rules_->last >= 0) return force_last();
  // One for each token that ends a hypothesis and one more, so that as many as there were go on.
  const std::int64_t ways = 1 + std::max<std::int64_t>(std::ssize(rules_->ends), 1);
  const auto count = static_cast<std::size_t>(ways * rules_->beams);
  find_candidates(logits, log_probabilities_, rules_->allowed, count, candidates_);
  require(!candidates_.empty(), ErrorCode::diverged, "no token has a probability above zero");
}

void BeamSource::force_last() {
  candidates_.clear();
  for (std::int32_t row = 0; row < std::ssize(running_); ++row) {
    candidates_.push_back({.log_probability = log_probabilities_[static_cast<std::size_t>(row)],
                           .token = rules_->last,
                           .parent = row});
  }
  std::ranges::sort(
      candidates_, [](const BeamCandidate& a, const BeamCandidate& b) { return a.goes_before(b); });
}

void BeamSource::advance(View<const float> logits) {
  find_next(logits);
  if (recorder_.is_recording()) record_step();
  const auto beams = static_cast<std::size_t>(rules_->beams);
  ++length_;
  next_.clear();
  for (std::size_t rank = 0; rank < candidates_.size() && next_.size() < beams; ++rank) {
    const BeamCandidate& candidate = candidates_[rank];
    if (!rules_->ends_with(candidate.token)) {
      next_.push_back(extended(rank));
      recorder_.set_fate(recorder_.node(rank), BeamFate::kept);
    } else if (rank < beams) {
      end(extended(rank), BeamFate::finished);
      recorder_.set_fate(recorder_.node(rank), BeamFate::finished);
    }
  }
  std::swap(running_, next_);
  if (length_ == max_length_) return end_all();
  if (!can_improve()) return drop_all();
  keep_rows();
}

void BeamSource::record_step() {
  std::vector<std::int32_t> nodes;
  for (const Running& hypothesis : running_) nodes.push_back(hypothesis.recorded);
  recorder_.begin_step(candidates_, nodes, log_probabilities_);
}

// The hypothesis that a candidate makes of its parent.
BeamSource::Running BeamSource::extended(std::size_t rank) {
  const BeamCandidate& candidate = candidates_[rank];
  const Running& parent = running_[static_cast<std::size_t>(candidate.parent)];
  nodes_.push_back({candidate.token, parent.node});
  return {.log_probability = candidate.log_probability,
          .node = static_cast<std::int32_t>(std::ssize(nodes_) - 1),
          .parent = candidate.parent,
          .recorded = recorder_.node(rank)};
}

void BeamSource::end(const Running& hypothesis, BeamFate fate) {
  const Ended ended{.log_probability = hypothesis.log_probability,
                    .score = rules_->score(hypothesis.log_probability, length_),
                    .node = hypothesis.node,
                    .recorded = hypothesis.recorded,
                    .finished = fate == BeamFate::finished};
  const auto worse = [&](const Ended& other) { return other.score < ended.score; };
  ended_.insert(std::ranges::find_if(ended_, worse), ended);
  if (std::ssize(ended_) > rules_->beams) ended_.pop_back();
}

void BeamSource::end_all() {
  for (const Running& hypothesis : running_) end(hypothesis, BeamFate::kept);
  running_.clear();
}

void BeamSource::drop_all() {
  for (const Running& hypothesis : running_) {
    recorder_.set_fate(hypothesis.recorded, BeamFate::dropped);
  }
  running_.clear();
}

bool BeamSource::can_improve() const {
  if (std::ssize(ended_) < rules_->beams || running_.empty()) return true;
  // The likeliest continuation of this step, whether it ended or goes on.
  return rules_->score(candidates_.front().log_probability, length_) > ended_.back().score;
}

// A hypothesis stays in the row of its parent where it can, so that its cache need not be copied.
void BeamSource::keep_rows() {
  const auto rows = running_.size();
  next_.assign(rows, {.log_probability = 0, .node = -1, .parent = -1, .recorded = -1});
  std::size_t moved = 0;
  for (const Running& hypothesis : running_) {
    const auto own = static_cast<std::size_t>(hypothesis.parent);
    if (own < rows && next_[own].parent < 0) {
      next_[own] = hypothesis;
    } else {
      running_[moved++] = hypothesis;
    }
  }
  std::size_t row = 0;
  for (std::size_t i = 0; i < moved; ++i) {
    while (next_[row].parent >= 0) ++row;
    next_[row] = running_[i];
  }
  std::swap(running_, next_);
}

std::vector<TokenHypothesis> BeamSource::results(std::int64_t n_best) {
  std::vector<TokenHypothesis> hypotheses;
  for (const Ended& ended : ended_) {
    if (std::ssize(hypotheses) == n_best) break;
    TokenHypothesis hypothesis{.tokens = {},
                               .log_probability = ended.log_probability,
                               .score = ended.score,
                               .finished = ended.finished};
    for (std::int32_t node = ended.node; node >= 0;
         node = nodes_[static_cast<std::size_t>(node)].before) {
      hypothesis.tokens.push_back(nodes_[static_cast<std::size_t>(node)].token);
    }
    std::ranges::reverse(hypothesis.tokens);
    hypotheses.push_back(std::move(hypothesis));
    recorder_.add_hypothesis(ended.recorded);
  }
  return hypotheses;
}

}  // namespace heed
