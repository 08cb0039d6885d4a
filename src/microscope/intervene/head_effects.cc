#include "microscope/intervene/head_effects.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "microscope/intervene/intervention.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::size_t most_heads_tried = 24;  // each takes a pass

// Probabilities of the token after the text, (V).
std::vector<double> next_token(const Gpt& gpt, std::span<const std::int32_t> tokens,
                               Editor* editor) {
  const std::int64_t positions = std::ssize(tokens);
  const GptActivations activations(gpt.config(), 1, positions, Keep::one_block);
  gpt.forward({tokens.data(), {1, positions}}, {.positions = positions, .editor = editor},
              activations);
  Tensor<float> logits(Shape{1, gpt.config().vocabulary_size});
  gpt.project(activations.final_norm().slice(0, positions - 1, positions), logits);
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

}  // namespace

std::vector<HeadEffect> head_effects(const Gpt& gpt, std::span<const std::int32_t> tokens,
                                     std::span<const RankedHead> heads) {
  require_text_fits(gpt.config(), tokens);
  const std::vector<double> with = next_token(gpt, tokens, nullptr);
  std::vector<HeadEffect> effects;
  for (const RankedHead& each : heads) {
    Interventions off(gpt.config(), {{.point = {PointKind::mixed_values, each.layer},
                                      .where = {.heads = {each.head}},
                                      .change = SetZero{}}});
    const std::vector<double> without = next_token(gpt, tokens, &off);
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

HeadEffect head_to_show(const Gpt& gpt, std::span<const std::int32_t> tokens,
                        const std::vector<View<const float>>& patterns, std::int64_t position,
                        std::int64_t own_begin) {
  std::vector<RankedHead> heads = rank_heads_for(patterns, position, own_begin);
  heads.resize(std::min(heads.size(), most_heads_tried));
  const auto read = tokens.first(static_cast<std::size_t>(position + 1));
  return head_effects(gpt, read, heads).front();
}

}  // namespace heed
