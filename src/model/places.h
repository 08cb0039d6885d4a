// Layers, heads and neurons as a caller names them.
#pragma once

#include "model/config.h"

namespace heed {

// Hand back what they are given. Throw Error{invalid_argument} for what the model does not have.
std::int64_t checked_layer(std::int64_t layer, const GptConfig& config);
std::int64_t checked_head(std::int64_t head, const GptConfig& config);
std::int64_t checked_neuron(std::int64_t neuron, const GptConfig& config);

}  // namespace heed
