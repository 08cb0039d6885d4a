// The output vectors of a layer's neurons.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer.h"

namespace heed {

// A neuron's column of W_out, (C): what it writes to the stream per unit of activation.
void copy_neuron_output(const Transformer& gpt, std::int64_t layer, std::int64_t neuron,
                        std::span<float> out);

// The Euclidean norms of all columns of W_out, (F).
std::vector<double> neuron_output_lengths(const Transformer& gpt, std::int64_t layer);

// The `count` neurons with the largest |activation| · ‖column‖ at a position, largest first.
struct NeuronStrength {
  std::int64_t neuron = 0;
  float activation = 0;
  double strength = 0;
};
std::vector<NeuronStrength> strongest_neurons(const Transformer& gpt, std::int64_t layer,
                                              std::span<const float> activations,
                                              std::size_t count);

}  // namespace heed
