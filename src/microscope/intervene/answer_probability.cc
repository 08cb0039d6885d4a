#include "microscope/intervene/answer_probability.h"
#include "kernels/elements.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"
#include "tensor/allocated_bytes.h"

#include <fmt/format.h>

#include <algorithm>

namespace heed {

namespace {

constexpr std::int64_t rows_together = 1024;  // of a pass: more make it no faster

// (texts, V), at the last position of each.
Tensor<float> last_logits(const Transformer& model, const StackActivations& activations,
                          std::int64_t texts, std::int64_t positions) {
  std::vector<std::int32_t> rows;
  for (std::int64_t text = 1; text <= texts; ++text) {
    rows.push_back(static_cast<std::int32_t>(text * positions - 1));
  }
  Tensor<float> ends(Shape{texts, model.specification().channels});
  kernels::gather_rows(activations.final_norm(), rows, ends);
  Tensor<float> logits(Shape{texts, model.specification().vocabulary_size});
  model.project(ends, logits, 1);
  return logits;
}

}  // namespace

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
  const StackActivations activations(model.specification(), 1, positions, Keep::one_block, 0,
                                     model.device());
  model.forward({tokens.data(), {1, positions}},
                {.sequences = {1, positions}, .probe = probe, .editor = editor}, activations);
  return probabilities_of(last_logits(model, activations, 1, positions).span());
}

double answer_probability(const Transformer& model, std::span<const std::int32_t> tokens,
                          std::int32_t answer, Editor* editor, Probe* probe) {
  return next_token_probabilities(model, tokens, editor, probe)[static_cast<std::size_t>(answer)];
}

double edited_logits_bytes(const Transformer& model, std::int64_t positions, std::int64_t edits) {
  const StackSpecification& stack = model.specification();
  const std::int64_t together =
      std::min(edits, std::max<std::int64_t>(rows_together / positions, 1));
  const auto floats = [](std::int64_t rows, std::int64_t width) {
    return max_allocated_bytes(sizeof(float) * static_cast<double>(rows) *
                               static_cast<double>(width));
  };
  return max_allocated_bytes(static_cast<double>(
             StackActivations::bytes_needed(stack, together, positions, Keep::one_block))) +
         floats(together, positions + stack.channels) + floats(together, stack.vocabulary_size) +
         floats(edits, stack.vocabulary_size);
}

Tensor<float> edited_logits(const Transformer& model, std::span<const std::int32_t> tokens,
                            std::span<Interventions> edits, const std::function<void()>& poll) {
  require_predicts_next(model.specification(), "the probability of an answer");
  const std::int64_t positions = std::ssize(tokens);
  const std::int64_t together = std::max<std::int64_t>(rows_together / positions, 1);
  Tensor<float> found(Shape{std::ssize(edits), model.specification().vocabulary_size});
  for (std::int64_t begin = 0; begin < std::ssize(edits); begin += together) {
    if (poll) poll();
    const std::int64_t count = std::min(together, std::ssize(edits) - begin);
    std::vector<Editor*> editors;
    std::vector<std::int32_t> copies;  // (count, T)
    for (Interventions& each :
         edits.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count))) {
      editors.push_back(&each);
      copies.insert(copies.end(), tokens.begin(), tokens.end());
    }
    EditorOfEach editor(std::move(editors));
    const StackActivations activations(model.specification(), count, positions, Keep::one_block, 0,
                                       model.device());
    model.forward({copies.data(), {count, positions}},
                  {.sequences = {count, positions}, .editor = &editor}, activations);
    kernels::copy(last_logits(model, activations, count, positions).view(),
                  found.view().slice(0, begin, begin + count));
  }
  return found;
}

std::vector<double> answer_probabilities(const Transformer& model,
                                         std::span<const std::int32_t> tokens, std::int32_t answer,
                                         std::span<Interventions> edits) {
  const Tensor<float> logits = edited_logits(model, tokens, edits);
  std::vector<double> found;
  for (std::int64_t i = 0; i < std::ssize(edits); ++i) {
    found.push_back(probabilities_of(logits.view()[i].span())[static_cast<std::size_t>(answer)]);
  }
  return found;
}

HeadsOff heads_that_halve(const StackSpecification& config, double before, std::size_t most,
                          const ProbabilitiesWithout& without) {
  HeadsOff off{.after = before};
  while (off.after > before / 2 && off.heads.size() < most) {
    std::vector<std::vector<HeadName>> lists;
    for (const HeadName& head : all_heads(config)) {
      if (std::ranges::find(off.heads, head) != off.heads.end()) continue;
      lists.push_back(off.heads);
      lists.back().push_back(head);
    }
    if (lists.empty()) break;
    const std::vector<double> left = without(lists);
    const auto least = std::ranges::min_element(left);
    if (*least >= off.after) break;
    off.after = *least;
    off.heads = lists[static_cast<std::size_t>(least - left.begin())];
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
