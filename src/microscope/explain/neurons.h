// What neurons write to the stream, and the texts that they fire on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/explain/logit_direction.h"
#include "model/transformer.h"

namespace heed {

// The output vectors of a layer's neurons.
// A neuron's column of W_out, (C): what it writes to the stream per unit of activation.
void copy_neuron_output(const Transformer& model, std::int64_t layer, std::int64_t neuron,
                        std::span<float> out);

// The Euclidean norms of all columns of W_out, (F).
std::vector<double> neuron_output_lengths(const Transformer& model, std::int64_t layer);

// The `count` neurons with the largest |activation| · ‖column‖ at a position, largest first.
struct NeuronStrength {
  std::int64_t neuron = 0;
  float activation = 0;
  double strength = 0;
};
std::vector<NeuronStrength> strongest_neurons(const Transformer& model, std::int64_t layer,
                                              std::span<const float> activations,
                                              std::size_t count);

// What each neuron of a layer adds to a logit, or a log-probability, past all later blocks:
// activation · (its output vector · direction) / `scale`, the final norm's. Of `activations` (F).
std::vector<double> direct_neuron_effects(const Transformer& model, std::int64_t layer,
                                          std::span<const float> activations,
                                          const LogitDirection& direction, double scale);

// Feed-forward neurons as key-value memories: the contexts that activate a neuron, and the tokens
// that it promotes.
struct NeuronId {
  std::int64_t layer = 0;
  std::int64_t neuron = 0;
};

// A position of the corpus where a neuron is active, with its surrounding tokens.
struct NeuronContext {
  std::int64_t position = 0;         // of the token in the corpus
  float activation = 0;              // mlp.hook_post
  std::vector<std::int32_t> tokens;  // `before` tokens, the one at `position`, `after` tokens
  std::vector<float> activations;    // at each of them
  std::int64_t peak = 0;             // the index of `position` in `tokens`
};

struct NeuronMemory {
  NeuronId id;
  std::vector<NeuronContext> contexts;  // largest activation first, at most one from each window
  double mean_activation = 0;           // over all tokens
  double active_share = 0;              // of tokens with an activation above zero
  float largest = 0;
  VocabularyProjection says;  // tokens that its column of W_out promotes and suppresses
};

struct NeuronSearch {
  std::int64_t top = 10;      // contexts and tokens at each end
  std::int64_t window = 256;  // tokens in a forward pass, at most the model's context
  std::int64_t batch = 8;     // windows in a forward pass
  std::int64_t before = 12;   // tokens shown before the active one
  std::int64_t after = 4;
  ProgressCallback progress{};
  StopFlag stop = nullptr;
};

// Runs the model on the corpus window by window and keeps the `top` windows of each neuron
// (Geva et al., Transformer Feed-Forward Layers Are Key-Value Memories, 2021). Memory does not grow
// with the corpus. Throws Error{invalid_argument} for no tokens or a neuron that does not
// exist, Error{interrupted} when stopped.
std::vector<NeuronMemory> find_neuron_contexts(const Transformer& model,
                                               std::span<const std::int32_t> corpus,
                                               std::span<const NeuronId> neurons,
                                               const NeuronSearch& search = {});

}  // namespace heed
