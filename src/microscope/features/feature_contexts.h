// What features of a dictionary are: how often they are active, where most, and which logits they
// raise and lower.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "microscope/explain/neurons.h"
#include "microscope/features/activation_stream.h"
#include "microscope/features/dictionary.h"

namespace heed {

struct FeatureContextSearch {
  std::vector<std::int64_t> features{};  // empty: `count` of them, from the densest on
  std::int64_t count = 10;
  std::int64_t tokens = 1 << 16;  // of the text that are read, at most
  NeuronSearch windows{.top = 8, .window = 128};
};

struct FeatureStatistics {
  std::int64_t tokens = 0;
  std::vector<std::int64_t> active;  // (F): tokens at which each was active
  // id.neuron is the feature, id.layer −1; what it says, where it writes the stream.
  std::vector<NeuronMemory> memories{};
};

// Reads the text once, or twice where the features follow from how dense they are. Memory does not
// grow with the text. Throws Error{invalid_argument} for a feature that does not exist,
// Error{interrupted} when stopped.
FeatureStatistics find_feature_contexts(const Transformer& model, const Tokenizer& tokenizer,
                                        std::string_view text, const Dictionary& dictionary,
                                        const FeatureContextSearch& search);

}  // namespace heed
