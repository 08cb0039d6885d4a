// What a layer's neurons write to the stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/gpt.h"

namespace heed {

// What a neuron adds when it is 1: its column of W_out, (C).
void copy_neuron_output(const Gpt& gpt, std::int64_t layer, std::int64_t neuron,
                        std::span<float> out);

// Euclidean lengths of all of them, (F).
std::vector<double> neuron_output_lengths(const Gpt& gpt, std::int64_t layer);

// The `count` neurons that write most at a position, |activation| · ‖column‖, the strongest first.
struct NeuronStrength {
  std::int64_t neuron = 0;
  float activation = 0;
  double strength = 0;
};
std::vector<NeuronStrength> strongest_neurons(const Gpt& gpt, std::int64_t layer,
                                              std::span<const float> activations,
                                              std::size_t count);

}  // namespace heed
