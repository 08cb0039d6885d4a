// Directions of the residual stream as tokens: projection onto the vocabulary.
#pragma once

#include <cstdint>
#include <vector>

#include "model/transformer.h"

namespace heed {

struct ProjectedToken {
  std::int32_t token = 0;
  float score = 0;
};

// Tokens with the largest and smallest dot products with a direction.
struct VocabularyProjection {
  std::vector<ProjectedToken> most;   // largest first
  std::vector<ProjectedToken> least;  // smallest first
};

// Projects output directions (M, C) through the unembedding: the tokens that they promote and
// suppress. Applies the final norm's gain and, for layer norms, its centring, without its scale and
// the biases. At most
// `top` tokens at each end.
std::vector<VocabularyProjection> project_to_logits(const Transformer& gpt,
                                                    View<const float> directions, std::int64_t top);

// Projects input directions (M, C) onto the token embeddings: the tokens that they respond to.
std::vector<VocabularyProjection> project_to_embeddings(const Transformer& gpt,
                                                        View<const float> directions,
                                                        std::int64_t top);

}  // namespace heed
