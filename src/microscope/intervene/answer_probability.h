// The probability of one token after a text, with heads switched off or other changes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "microscope/intervene/intervention.h"
#include "model/transformer.h"

namespace heed {

struct HeadName {
  std::int64_t layer = 0;
  std::int64_t head = 0;

  std::string text() const;  // "L2H3"
  friend bool operator==(const HeadName&, const HeadName&) = default;
};

// Layer by layer.
std::vector<HeadName> all_heads(const StackSpecification& config);

// Sets the mixed values of `heads` to zero at every position: switches the heads off.
Interventions switching_off(const StackSpecification& config, std::span<const HeadName> heads);

// Of every token after `tokens`, (V). Takes one pass.
std::vector<double> next_token_probabilities(const Transformer& model,
                                             std::span<const std::int32_t> tokens,
                                             Editor* editor = nullptr, Probe* probe = nullptr);

// Of `answer` after `tokens`. Takes one pass.
double answer_probability(const Transformer& model, std::span<const std::int32_t> tokens,
                          std::int32_t answer, Editor* editor = nullptr, Probe* probe = nullptr);

// Logits (edits, V) after the text with each of several edits of it, of each alone to the bit:
// short texts share passes. None may change scores or patterns. `poll` is called between passes; an
// exception ends the work.
Tensor<float> edited_logits(const Transformer& model, std::span<const std::int32_t> tokens,
                            std::span<Interventions> edits, const std::function<void()>& poll = {});
// Its memory with so many edits, at most, with what it gives.
double edited_logits_bytes(const Transformer& model, std::int64_t positions, std::int64_t edits);
// The probability of `answer` with each of them.
std::vector<double> answer_probabilities(const Transformer& model,
                                         std::span<const std::int32_t> tokens, std::int32_t answer,
                                         std::span<Interventions> edits);

// Heads that take at least half of a probability away: added one by one, each the one that takes
// most, until half of `before` is gone, `most` are chosen, or none takes anything. `without`
// measures the probability without each of several lists of heads.
struct HeadsOff {
  std::vector<HeadName> heads;
  double after = 0;  // the probability without them
};
using ProbabilitiesWithout =
    std::function<std::vector<double>(std::span<const std::vector<HeadName>> lists)>;
HeadsOff heads_that_halve(const StackSpecification& config, double before, std::size_t most,
                          const ProbabilitiesWithout& without);

// Keeps the attention of one query in every head.
class QueryRows final : public Probe {
 public:
  QueryRows(const StackSpecification& config, std::int64_t position)
      : rows_(static_cast<std::size_t>(config.layers * config.heads())),
        heads_(config.heads()),
        position_(position) {}

  bool wants(const Point& point) const override { return point.kind == PointKind::pattern; }
  void observe(const Point& point, View<const float> values) override;

  // Weights of the keys up to the query.
  std::span<const float> row(const HeadName& head) const {
    return rows_[static_cast<std::size_t>(head.layer * heads_ + head.head)];
  }

  // On the keys [begin, end), of which those after the query have none.
  double weight(const HeadName& head, std::int64_t begin, std::int64_t end) const;

 private:
  std::vector<std::vector<float>> rows_;  // of (layer, head)
  std::int64_t heads_;
  std::int64_t position_;
};

}  // namespace heed
