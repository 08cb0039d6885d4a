// What a model reads: the tokens of one text, or of a source and a target; and batches of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace heed {

struct Texts {
  std::vector<std::int32_t> source;  // of an encoder-decoder; empty: the model has one stack
  // As the decoder reads it: its start first. Position t has read tokens 0 to t and writes token
  // t + 1, the last position the end.
  std::vector<std::int32_t> target;
};

// Sequences of different lengths, one below the other: sequence b is
// tokens[row_starts[b], row_starts[b + 1]).
struct TokenRows {
  std::span<const std::int32_t> tokens;      // (N)
  std::span<const std::int64_t> row_starts;  // (B + 1)

  std::int64_t count() const { return std::ssize(row_starts) - 1; }  // B
  std::int64_t rows() const { return std::ssize(tokens); }           // N
};

// Pairs to learn from: the decoder reads `target` and predicts `next`.
struct PairBatch {
  TokenRows source;
  TokenRows target;
  std::span<const std::int32_t> next;  // (N of target): the token after each, or ignored_target
};

}  // namespace heed
