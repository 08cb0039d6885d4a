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
std::vector<PartNorm> gradient_norms(const GptConfig& config, GptGradients& gradients);

}  // namespace heed
