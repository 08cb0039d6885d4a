// What can be said of attention without its (T, S) buffer: numbers of each row, and tiles reduced
// to fewer cells. Both compute scores once more from query and key, tile by tile, and the pattern
// as exp(scores - log_sum_exp). Conventions as in kernels.h; the specification is in
// kernels/reference.
#pragma once

#include "kernels/operands.h"

namespace heed::kernels {

// Of every row of the pattern, before dropout; p is the row, s a position of the memory and o the
// query's own. Each is (B, H, T) and overwritten.
template <class T>
struct AttentionRowStatistics {
  View<T> entropy;    // −Σ p·ln p = log_sum_exp − Σ p·scores, in nats
  View<T> distance;   // Σ p·(o − s)
  View<T> first;      // p[0]
  View<T> self;       // p[o]
  View<T> previous;   // p[o − 1]
  View<T> duplicate;  // Σ p over s < o whose token is the query's
  View<T> induction;  // Σ p over 1 <= s <= o behind a token that is the query's
  View<T> largest;    // the largest p over 1 <= s < o − 1: what a head picks by its content
};

// tokens (B, S) of the memory, whose last T are the queries'; absent: duplicate and induction are
// zero. Causal masks alone: what a query is to itself is otherwise unknown.
void attention_row_statistics(const AttentionInput<float>& input, View<const float> log_sum_exp,
                              View<const std::int32_t> tokens,
                              const AttentionRowStatistics<float>& statistics);

// A tile reduced: each cell stands for up to pool × pool elements, fewer at the end of the tile.
template <class T>
struct PooledAttention {
  View<T> sum;  // (⌈queries / pool⌉, ⌈keys / pool⌉), of what is not masked; 0 where all is
  View<T> largest;  // likewise; of a pattern 0 where all is masked, of scores −∞
};

// Pools of 1, 2, 4, 8, 16, 32 or 64. Of the pattern, or of scores where log_sum_exp is absent.
void attention_pooled_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                           const AttentionTile& tile, std::int64_t pool,
                           const PooledAttention<float>& out);

namespace reference {

template <class T>
void attention_row_statistics(const AttentionInput<T>& input, View<const T> log_sum_exp,
                              View<const std::int32_t> tokens,
                              const AttentionRowStatistics<T>& statistics);
template <class T>
void attention_pooled_tile(const AttentionInput<T>& input, View<const T> log_sum_exp,
                           const AttentionTile& tile, std::int64_t pool,
                           const PooledAttention<T>& out);

}  // namespace reference
}  // namespace heed::kernels
