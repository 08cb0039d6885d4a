#include "microscope/intervene/head_effects.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::size_t most_heads_tried = 24;  // each takes a pass

}  // namespace

std::vector<HeadEffect> head_effects(const Transformer& gpt, std::span<const std::int32_t> tokens,
                                     std::span<const HeadName> heads, StopFlag stop) {
  require_predicts_next(gpt.specification(), "effects of heads");
  require_text_fits(gpt.specification(), tokens);
  const std::vector<double> with = next_token_probabilities(gpt, tokens);
  std::vector<HeadEffect> effects;
  for (const HeadName& each : heads) {
    require(!stop_requested(stop), ErrorCode::interrupted, "stopped while switching heads off");
    Interventions off = switching_off(gpt.specification(), {&each, 1});
    const std::vector<double> without = next_token_probabilities(gpt, tokens, &off);
    HeadEffect effect{.layer = each.layer, .head = each.head};
    double largest_loss = 0;
    for (std::size_t token = 0; token < with.size(); ++token) {
      const double loss = with[token] - without[token];
      effect.moved += 0.5 * std::abs(loss);
      if (loss <= largest_loss) continue;
      largest_loss = loss;
      effect.token = static_cast<std::int32_t>(token);
    }
    effect.before = with[static_cast<std::size_t>(effect.token)];
    effect.after = without[static_cast<std::size_t>(effect.token)];
    effects.push_back(effect);
  }
  std::ranges::stable_sort(effects, std::greater{}, &HeadEffect::moved);
  return effects;
}

std::vector<HeadName> selective_heads(const StackSpecification& config, const QueryRows& rows,
                                      std::int64_t position, std::int64_t own_begin,
                                      std::size_t most) {
  const auto largest_weight = [&](const HeadName& head) {
    float largest = 0;
    for (std::int64_t s = 1; s < std::min(own_begin, position - 1); ++s) {
      largest = std::max(largest, rows.row(head)[static_cast<std::size_t>(s)]);
    }
    return largest;
  };
  std::vector<HeadName> heads = all_heads(config);
  std::ranges::stable_sort(heads, std::greater{}, largest_weight);
  heads.resize(std::min(heads.size(), most));
  return heads;
}

HeadChoiceByEffect head_to_show(const Transformer& gpt, std::span<const std::int32_t> tokens,
                                std::int64_t position, std::int64_t own_begin, StopFlag stop) {
  require_predicts_next(gpt.specification(), "effects of heads");
  require_text_fits(gpt.specification(), tokens);
  check(position >= 0 && position < std::ssize(tokens), "the word is in the text");
  const auto read = tokens.first(static_cast<std::size_t>(position + 1));
  QueryRows rows(gpt.specification(), position);
  next_token_probabilities(gpt, read, nullptr, &rows);
  const std::vector<HeadName> heads =
      selective_heads(gpt.specification(), rows, position, own_begin, most_heads_tried);
  return {head_effects(gpt, read, heads, stop).front(), heads.size()};
}

}  // namespace heed
