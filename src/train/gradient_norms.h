// How large the gradients of the model's parts are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parameters.h"

namespace heed {

struct PartNorm {
  std::string part;  // "embedding", the block's number from "0" on, "final"
  double norm = 0;   // Euclidean, of the gradients of all its parameters
};

// In the order of a pass. A tied unembedding counts with the embedding.
std::vector<PartNorm> gradient_norms(const StackSpecification& config, GptGradients& gradients);

// Of an encoder and a decoder: "embedding", "encoder.0", …, "encoder.final", "decoder.0", ….
std::vector<PartNorm> gradient_norms(const Architecture& architecture, GptGradients& gradients);

}  // namespace heed
