#include "microscope/intervene/neuron_effects.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "microscope/explain/logit_direction.h"
#include "microscope/intervene/answer_probability.h"
#include "microscope/traces/capture.h"
#include "model/input_checks.h"

namespace heed {
namespace {

constexpr std::uint64_t control_seed = 9;
constexpr double min_that_matters = 0.005;  // of a probability

// Changes at the last position of a text.
class ChangesAtTheEnd {
 public:
  ChangesAtTheEnd(const Transformer& model, std::int64_t positions)
      : model_(model), last_(positions - 1) {}

  Interventions without(const NeuronId& id) const {
    return with({.point = {PointKind::neurons_post, id.layer},
                 .where = at_the_end({id.neuron}),
                 .change = SetZero{}});
  }
  // Less `activation` times the output vector of another neuron.
  Interventions without_that_of(const NeuronId& id, float activation) const {
    std::vector<float> taken(static_cast<std::size_t>(model_.specification().channels));
    copy_neuron_output(model_, id.layer, id.neuron, taken);
    for (float& value : taken) value *= -activation;
    return with({.point = {PointKind::feed_forward_out, id.layer},
                 .where = at_the_end({}),
                 .change = AddVector{std::move(taken)}});
  }

 private:
  Selection at_the_end(std::vector<std::int64_t> neurons) const {
    return {.neurons = std::move(neurons), .first_position = last_, .last_position = last_};
  }
  Interventions with(Intervention change) const {
    return {model_.specification(), {std::move(change)}};
  }

  const Transformer& model_;
  std::int64_t last_;
};

// Of every neuron of every layer, the largest direct effect first.
std::vector<NeuronEffect> direct_effects(const Transformer& model,
                                         std::span<const std::int32_t> tokens, std::int32_t token,
                                         std::span<const double> probabilities) {
  const std::int64_t layers = model.specification().layers, last = std::ssize(tokens) - 1;
  std::vector<Point> points = {{PointKind::final_scale, -1}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    points.push_back({PointKind::neurons_post, layer});
  }
  const Capture capture = trace(model, tokens, points);
  const double scale = capture.at(points.front()).view()(0, last, 0);
  const LogitDirection direction = log_probability_direction(model, token, probabilities);
  std::vector<NeuronEffect> effects;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto activations = capture.at({PointKind::neurons_post, layer}).view()[0][last].span();
    const std::vector<double> direct =
        direct_neuron_effects(model, layer, activations, direction, scale);
    for (std::size_t n = 0; n < direct.size(); ++n) {
      effects.push_back({.id = {layer, static_cast<std::int64_t>(n)},
                         .activation = activations[n],
                         .direct = direct[n]});
    }
  }
  std::ranges::stable_sort(effects, std::greater{}, &NeuronEffect::direct);
  return effects;
}

}  // namespace

bool NeuronEffects::first_matters() const {
  if (neurons.empty()) return false;
  const double taken = probability - neurons.front().without;
  return taken >= min_that_matters &&
         std::ranges::all_of(controls, [&](const NeuronControl& control) {
           return taken > std::abs(probability - control.without);
         });
}

NeuronEffects neuron_effects(const Transformer& model, std::span<const std::int32_t> tokens,
                             const NeuronEffectOptions& options) {
  const StackSpecification& stack = model.specification();
  require_predicts_next(stack, "effects of neurons");
  require_sums_to_logits(stack, "the direct effect of a neuron");
  require_text_fits(stack, tokens);
  const std::int64_t layer = checked_layer(options.layer, stack);
  if (options.chosen >= 0) checked_neuron(options.chosen, stack);
  require(options.most > 0, ErrorCode::invalid_argument, "at least one neuron must be listed");

  const std::vector<double> probabilities = next_token_probabilities(model, tokens);
  const auto likeliest = std::ranges::max_element(probabilities);
  NeuronEffects found{.token = static_cast<std::int32_t>(likeliest - probabilities.begin()),
                      .probability = *likeliest};
  std::vector<NeuronEffect> all = direct_effects(model, tokens, found.token, probabilities);
  check(!all.empty(), "a block has neurons");
  found.largest = all.front();
  std::erase_if(all, [&](const NeuronEffect& effect) { return effect.id.layer != layer; });
  if (options.chosen >= 0) {
    const auto chosen = std::ranges::find_if(
        all, [&](const NeuronEffect& effect) { return effect.id.neuron == options.chosen; });
    std::rotate(all.begin(), chosen, chosen + 1);
  }
  all.resize(std::min(all.size(), options.most));
  found.neurons = std::move(all);

  const ChangesAtTheEnd changes(model, std::ssize(tokens));
  std::vector<Interventions> edits;
  for (const NeuronEffect& effect : found.neurons) edits.push_back(changes.without(effect.id));
  const NeuronEffect& first = found.neurons.front();
  const Permutation order(static_cast<std::uint64_t>(stack.feed_forward()), control_seed,
                          static_cast<std::uint64_t>(layer));
  for (std::int64_t i = 0; i < stack.feed_forward() && found.controls.size() < options.controls;
       ++i) {
    const NeuronId id{layer, static_cast<std::int64_t>(order(static_cast<std::uint64_t>(i)))};
    if (id.neuron == first.id.neuron) continue;
    found.controls.push_back({.id = id});
    edits.push_back(changes.without_that_of(id, first.activation));
  }
  require(!stop_requested(options.stop), ErrorCode::interrupted,
          "stopped while switching neurons off");
  const std::vector<double> without = answer_probabilities(model, tokens, found.token, edits);
  for (std::size_t i = 0; i < found.neurons.size(); ++i) found.neurons[i].without = without[i];
  for (std::size_t i = 0; i < found.controls.size(); ++i) {
    found.controls[i].without = without[found.neurons.size() + i];
  }
  return found;
}

}  // namespace heed
