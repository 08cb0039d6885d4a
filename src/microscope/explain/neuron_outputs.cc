#include "microscope/explain/neuron_outputs.h"

#include <algorithm>
#include <cmath>

namespace heed {

void copy_neuron_output(const Transformer& gpt, std::int64_t layer, std::int64_t neuron,
                        std::span<float> out) {
  const View<const float> weight = gpt.parameters().block(layer).down.weight;  // (C, F)
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] = weight(static_cast<std::int64_t>(c), neuron);
  }
}

std::vector<double> neuron_output_lengths(const Transformer& gpt, std::int64_t layer) {
  const View<const float> weight = gpt.parameters().block(layer).down.weight;
  std::vector<double> squares(static_cast<std::size_t>(weight.extent(1)), 0.0);
  for (std::int64_t c = 0; c < weight.extent(0); ++c) {
    for (std::size_t n = 0; n < squares.size(); ++n) {
      const double value = weight(c, static_cast<std::int64_t>(n));
      squares[n] += value * value;
    }
  }
  for (double& square : squares) square = std::sqrt(square);
  return squares;
}

std::vector<NeuronStrength> strongest_neurons(const Transformer& gpt, std::int64_t layer,
                                              std::span<const float> activations,
                                              std::size_t count) {
  const std::vector<double> lengths = neuron_output_lengths(gpt, layer);
  std::vector<NeuronStrength> neurons;
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    neurons.push_back({static_cast<std::int64_t>(n), activations[n],
                       std::abs(static_cast<double>(activations[n])) * lengths[n]});
  }
  count = std::min(count, neurons.size());
  std::ranges::partial_sort(neurons, neurons.begin() + static_cast<std::ptrdiff_t>(count),
                            std::ranges::greater{}, &NeuronStrength::strength);
  neurons.resize(count);
  return neurons;
}

}  // namespace heed
