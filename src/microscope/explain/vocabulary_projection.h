// Directions of the residual stream, read in words.
#pragma once

#include <cstdint>
#include <vector>

#include "model/gpt.h"

namespace heed {

struct ProjectedToken {
  std::int32_t token = 0;
  float score = 0;
};

// Tokens by their dot product with a direction.
struct VocabularyProjection {
  std::vector<ProjectedToken> most;   // the largest first
  std::vector<ProjectedToken> least;  // the smallest first
};

// Directions (M, C) that something writes, through the vocabulary projection: what they promote and
// suppress. The final norm's gain is applied and the mean taken away, its scale and the biases left
// out. At most `top` tokens at each end.
std::vector<VocabularyProjection> project_to_logits(const Gpt& gpt, View<const float> directions,
                                                    std::int64_t top);

// Directions (M, C) that something reads, by the token embedding: which tokens' own embeddings it
// answers to.
std::vector<VocabularyProjection> project_to_embeddings(const Gpt& gpt,
                                                        View<const float> directions,
                                                        std::int64_t top);

}  // namespace heed
