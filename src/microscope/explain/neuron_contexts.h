// The feed-forward layer as a memory of keys and values: what excites a neuron, and what it says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "microscope/explain/vocabulary_projection.h"
#include "model/gpt.h"

namespace heed {

struct NeuronId {
  std::int64_t layer = 0;
  std::int64_t neuron = 0;
};

// A place of the corpus where a neuron is excited, with what stands around it.
struct NeuronContext {
  std::int64_t position = 0;         // of the token in the corpus
  float activation = 0;              // mlp.hook_post
  std::vector<std::int32_t> tokens;  // up to `before` tokens, the one itself, up to `after`
  std::vector<float> activations;    // of each of them
  std::int64_t peak = 0;             // the index of the one itself
};

struct NeuronMemory {
  NeuronId id;
  std::vector<NeuronContext> contexts;  // the most exciting first, each from a window of its own
  double mean_activation = 0;           // over all tokens
  double active_share = 0;              // of the tokens at which it is above zero
  float largest = 0;
  VocabularyProjection says;  // what its column of W_out promotes and suppresses
};

struct NeuronSearch {
  std::int64_t top = 10;      // contexts and tokens at each end
  std::int64_t window = 256;  // tokens read together, at most the model's context
  std::int64_t batch = 8;     // windows in a pass
  std::int64_t before = 12;   // tokens shown before the one itself
  std::int64_t after = 4;
  ProgressCallback progress{};
  StopFlag stop = nullptr;
};

// Streams the corpus through the model window by window and keeps the `top` windows of each neuron
// (Geva et al., Transformer Feed-Forward Layers Are Key-Value Memories, 2021). Memory does not grow
// with the corpus. Throws Error{invalid_argument} for no tokens or a neuron that is not there,
// Error{interrupted} when asked to stop.
std::vector<NeuronMemory> find_neuron_contexts(const Gpt& gpt, std::span<const std::int32_t> corpus,
                                               std::span<const NeuronId> neurons,
                                               const NeuronSearch& search = {});

}  // namespace heed
