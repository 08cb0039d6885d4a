// Feed-forward neurons as key-value memories: the contexts that activate a neuron, and the tokens
// that it promotes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/explain/vocabulary_projection.h"
#include "model/transformer.h"

namespace heed {

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
std::vector<NeuronMemory> find_neuron_contexts(const Transformer& gpt,
                                               std::span<const std::int32_t> corpus,
                                               std::span<const NeuronId> neurons,
                                               const NeuronSearch& search = {});

}  // namespace heed
