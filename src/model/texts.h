// Batches of what a model reads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/texts.h"

namespace heed {

// Which of the two texts of a pair.
enum class PairSide { source, target };

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
