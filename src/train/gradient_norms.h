// How large the gradients of the model's parts are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "train/shards.h"

namespace heed {

struct PartNorm {
  std::string part;  // "embedding", the block's number from "0" on, "final"
  double norm = 0;   // Euclidean, of the gradients of all its parameters
};

// In the order of the arena: "embedding", "0", …, "final"; of an encoder and a decoder
// "encoder.embedding", "encoder.0", …, "decoder.final". A tied unembedding counts with the
// embedding. Each process of a group has the gradients of its own ranges, and gets the norms of
// all.
std::vector<PartNorm> gradient_norms(const Architecture& architecture,
                                     const GptGradients& gradients,
                                     const std::vector<ArenaRange>& own, Group& group);

}  // namespace heed
