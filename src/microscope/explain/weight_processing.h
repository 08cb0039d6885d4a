// Equivalent weights that are easier to interpret: norms and biases folded into other weights
// without changing the predictions.
#pragma once

#include "model/transformer.h"

namespace heed {

// Steps, applied in this order (Nanda and Bloom, TransformerLens, 2022: process_weights). Logits
// change by a constant over the vocabulary; their softmax is unchanged.
struct WeightProcessing {
  // Folds gain g and bias b of a norm into the matrices W (O, C) after it: bias += W·b, W ← W·g,
  // and for layer norms subtracts the mean of each row of W, because rows that they normalise have
  // mean zero. Norms then only centre and scale; RMS norms only scale.
  bool fold_norms = true;
  // Subtracts the mean over the channels from all weights that write to the stream (embeddings,
  // projections, down, their biases): the next norm would remove it. Nothing with RMS norms, which
  // see the mean.
  bool centre_writing_weights = true;
  // Subtracts the mean over the vocabulary from the unembedding.
  bool centre_unembedding = true;
  // Moves value biases into the projection's bias: the rows of a pattern sum to one, so the bias
  // passes through attention unchanged. projection's bias += W_O·b_V, b_V ← 0. A shared value's
  // bias passes through every head of its group.
  bool fold_value_biases = true;
};

// Returns a new model with an untied unembedding, and with the biases that folded ones become.
// Norms of queries and keys stay: what they normalise is a head, not the stream. Sums are
// accumulated in double. The result is not prepared (Parameters::prepare).
Transformer process_weights(const Transformer& model, const WeightProcessing& processing = {});

}  // namespace heed
