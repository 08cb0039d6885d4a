#include "microscope/intervene/answer_probability.h"
#include "model/input_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace heed {

std::string HeadName::text() const { return fmt::format("L{}H{}", layer, head); }

std::vector<HeadName> all_heads(const StackSpecification& config) {
  std::vector<HeadName> heads;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    for (std::int64_t head = 0; head < config.heads(); ++head) heads.push_back({layer, head});
  }
  return heads;
}

Interventions switching_off(const StackSpecification& config, std::span<const HeadName> heads) {
  std::vector<Intervention> off;
  for (const HeadName& head : heads) {
    off.push_back({.point = {PointKind::mixed_values, head.layer},
                   .where = {.heads = {head.head}},
                   .change = SetZero{}});
  }
  return {config, std::move(off)};
}

std::vector<double> next_token_probabilities(const Transformer& model,
                                             std::span<const std::int32_t> tokens, Editor* editor,
                                             Probe* probe) {
  require_predicts_next(model.specification(), "the probability of an answer");
  const std::int64_t positions = std::ssize(tokens);
  const StackActivations activations(model.specification(), 1, positions, Keep::one_block);
  model.forward({tokens.data(), {1, positions}},
                {.sequences = {1, positions}, .probe = probe, .editor = editor}, activations);
  Tensor<float> logits(Shape{1, model.specification().vocabulary_size});
  model.project(activations.final_norm().slice(0, positions - 1, positions), logits);
  const double largest = *std::ranges::max_element(logits.span());
  std::vector<double> probabilities;
  double sum = 0;
  for (const float logit : logits.span()) {
    probabilities.push_back(std::exp(logit - largest));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

double answer_probability(const Transformer& model, std::span<const std::int32_t> tokens,
                          std::int32_t answer, Editor* editor, Probe* probe) {
  return next_token_probabilities(model, tokens, editor, probe)[static_cast<std::size_t>(answer)];
}

double answer_probability_without(const Transformer& model, std::span<const std::int32_t> tokens,
                                  std::int32_t answer, std::span<const HeadName> heads) {
  Interventions interventions = switching_off(model.specification(), heads);
  return answer_probability(model, tokens, answer, &interventions);
}

HeadsOff heads_that_halve(const StackSpecification& config, double before, std::size_t most,
                          const std::function<double(const std::vector<HeadName>&)>& without) {
  HeadsOff off{.after = before};
  while (off.after > before / 2 && off.heads.size() < most) {
    std::optional<HeadName> best;
    for (const HeadName& head : all_heads(config)) {
      if (std::ranges::find(off.heads, head) != off.heads.end()) continue;
      std::vector<HeadName> more = off.heads;
      more.push_back(head);
      const double left = without(more);
      if (left >= off.after) continue;
      off.after = left;
      best = head;
    }
    if (!best) break;
    off.heads.push_back(*best);
  }
  return off;
}

void QueryRows::observe(const Point& point, View<const float> values) {
  const View<const float> pattern = values[0];  // (H, T, T)
  for (std::int64_t head = 0; head < heads_; ++head) {
    const auto row = pattern[head][position_].span();
    rows_[static_cast<std::size_t>(point.layer * heads_ + head)].assign(
        row.begin(), row.begin() + position_ + 1);
  }
}

double QueryRows::weight(const HeadName& head, std::int64_t begin, std::int64_t end) const {
  double sum = 0;
  for (std::int64_t s = begin; s < std::min(end, position_ + 1); ++s) {
    sum += row(head)[static_cast<std::size_t>(s)];
  }
  return sum;
}

}  // namespace heed
