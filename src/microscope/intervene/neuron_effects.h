// What single neurons do to the next token: directly, by what they write to the stream, and as
// measured by switching them off.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/explain/neurons.h"
#include "model/transformer.h"

namespace heed {

struct NeuronEffect {
  NeuronId id;
  float activation = 0;
  // What it adds to log p(token) past all later blocks, to first order: activation · (its output
  // vector · log_probability_direction) / σ of the final norm. Not to the token's logit alone: in
  // the starter's last block, the neurons that raise it most raise the words beside it as much.
  double direct = 0;
  double without = 0;  // the token's probability where its activation is zero at the position
};

// The control of one neuron: what is taken away has the same activation, but another neuron's
// output vector.
struct NeuronControl {
  NeuronId id;
  double without = 0;
};

struct NeuronEffects {
  std::int32_t token = 0;  // the likeliest after the text
  double probability = 0;
  std::vector<NeuronEffect> neurons;    // of one layer, the largest direct effect first
  std::vector<NeuronControl> controls;  // of the first of them
  NeuronEffect largest;  // of all layers, the largest direct effect; `without` is not measured

  // Whether switching off the first one takes more of the probability than every control does, and
  // at least half a percentage point.
  bool first_matters() const;
};

struct NeuronEffectOptions {
  std::int64_t layer = 0;
  std::size_t most = 8;      // neurons that are listed and switched off, one pass each
  std::size_t controls = 8;  // other neurons drawn at random, one pass each
  // A neuron of the layer to list and control first, whatever its effect; −1: none.
  std::int64_t chosen = -1;
  StopFlag stop = nullptr;
};

// Of the likeliest token after `tokens`. Neurons are switched off at the last position alone.
// Throws Error{unsupported} for a model whose norms come after their branches, since what a neuron
// writes is then no part of a sum; Error{invalid_argument} for a layer, a neuron or a text that
// does not fit the model; and Error{interrupted} when stopped.
NeuronEffects neuron_effects(const Transformer& model, std::span<const std::int32_t> tokens,
                             const NeuronEffectOptions& options = {});

}  // namespace heed
