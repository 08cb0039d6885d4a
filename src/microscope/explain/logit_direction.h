// The direction of a logit in the stream, and the tokens that a direction stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/transformer.h"

namespace heed {

// A logit, or the difference of two, as a linear function of the last residual stream: the
// direction that direct logit attribution projects onto.
// The logit of a token, or its difference to the logit of another token.
struct LogitQuestion {
  std::int32_t token = 0;
  std::optional<std::int32_t> against;

  // Throws Error{invalid_argument} for a token outside the vocabulary.
  void validate(const StackSpecification& config) const;
};

// With the final norm's scale σ held, the logit of stream r (C) is
//   Σ_c direction[c]·r[c] / σ + constant
// where direction is gain ⊙ W_U[token], minus its mean over the channels for layer norms (which
// centre), and constant is the contribution of the biases of norm and unembedding (Nanda and Bloom,
// TransformerLens, 2022: apply_ln_to_stack and logit_attrs).
struct LogitDirection {
  std::vector<double> direction;  // (C)
  double constant = 0;

  // direction · x, for any contribution x (C) to the stream; divide by σ.
  double project(std::span<const float> x) const;
  double project(std::span<const double> x) const;
  // direction · each column of a matrix (C, I) that writes to the stream, as the model multiplies
  // by it: (I).
  std::vector<double> through(const LinearWeights& linear) const;
};

LogitDirection logit_direction(const Transformer& model, const LogitQuestion& question);

// The same of log p(token), to first order at the given probabilities of all tokens: the token's
// logit less the mean of all logits with these weights. What raises all likely words alike is
// nothing in it. Throws Error{invalid_argument} for a token outside the vocabulary.
LogitDirection log_probability_direction(const Transformer& model, std::int32_t token,
                                         std::span<const double> probabilities);

// Directions of the residual stream as tokens: projection onto the vocabulary.
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
std::vector<VocabularyProjection> project_to_logits(const Transformer& model,
                                                    View<const float> directions, std::int64_t top);

// Projects input directions (M, C) onto the token embeddings: the tokens that they respond to.
std::vector<VocabularyProjection> project_to_embeddings(const Transformer& model,
                                                        View<const float> directions,
                                                        std::int64_t top);

}  // namespace heed
