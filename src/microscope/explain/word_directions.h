// Which words a vector points to: its cosines with vectors of the vocabulary, beside what other
// words or chance give.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "heed/explain.h"
#include "microscope/traces/recorded_pass.h"
#include "tensor/tensor.h"

namespace heed {

// How often a vector is shuffled to tell chance.
inline constexpr int nearest_word_shuffles = 39;

struct NearestWordOptions {
  std::int64_t top = 6;                  // words of each vector
  std::vector<std::int32_t> left_out{};  // of each vector, the word that is not named; −1: none
  StopFlag stop = nullptr;
};

// embeddings (V, C), vectors (N, C). Throws Error{invalid_argument} for fewer than one word to name
// and a vocabulary of fewer than two, Error{interrupted} when stopped.
std::vector<NearestWords> nearest_words(View<const float> embeddings, View<const float> vectors,
                                        const NearestWordOptions& options = {});

// The same of a position of a text (−1: the last) at the depths of depth_points(). The token's own
// embedding is left out where the vector is that embedding; deeper, it counts as any other word.
struct NearestWordsByDepth {
  std::int64_t position = 0;
  std::vector<Point> points;
  std::vector<NearestWords> depths;
};
NearestWordsByDepth nearest_words(const RecordedPass& pass, std::int64_t position = -1,
                                  std::int64_t top = 6, StopFlag stop = nullptr);

// Cosines of vectors with chosen words, and the control: with others.
struct WordCosines {
  std::vector<std::vector<double>> words;  // [word][vector]; 0 where one of the two is zero
  std::vector<double> others_mean;         // [vector]
  std::vector<double> others_largest;
};
// vectors (N, C), words (M, C), others (K, C), K at least 1.
WordCosines word_cosines(View<const float> vectors, View<const float> words,
                         View<const float> others);

// Up to `most` tokens spread evenly over a vocabulary, without the chosen ones.
std::vector<std::int32_t> spread_tokens(std::int64_t vocabulary, std::int64_t most,
                                        std::span<const std::int32_t> chosen);

enum class WordDirection {
  read,  // the token's embedding
  next,  // its row of the unembedding, which raises its logit
};
// The rows (tokens, C) of some tokens. Throws Error{invalid_argument} for one that is not in the
// vocabulary.
Tensor<float> word_directions(const Transformer& model, std::span<const std::int32_t> tokens,
                              WordDirection direction);

}  // namespace heed
