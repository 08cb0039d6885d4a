// The same function in a form that is easier to read: what weights can be moved into others without
// changing what the model predicts.
#pragma once

#include "model/gpt.h"

namespace heed {

// What to do, in this order (Nanda and Bloom, TransformerLens, 2022: process_weights). The softmax
// of the logits stays what it was; the logits move together by a number that is the same for the
// whole vocabulary.
struct WeightProcessing {
  // Gain g and bias b of a norm go into the matrices W (O, C) that read it: bias += W·b, W ← W·g,
  // and each row of W loses its mean, for a normed stream has none. Norms then only centre and
  // scale.
  bool fold_norms = true;
  // What writes to the stream (embeddings, projections, down, their biases) loses its mean over the
  // channels, which the next norm would take away.
  bool centre_writing_weights = true;
  // The vocabulary projection loses its mean over the vocabulary.
  bool centre_unembedding = true;
  // A pattern's rows sum to one, so that a value's bias always arrives as it is: projection's bias
  // += W_O·b_V, b_V ← 0.
  bool fold_value_biases = true;
};

// A model of its own, with a head that is not tied and, where the model has biases, has a bias.
// Every sum is made in double. The result is not prepared (GptParameters::prepare).
Gpt process_weights(const Gpt& gpt, const WeightProcessing& processing = {});

}  // namespace heed
