// Summaries of attention without its (T, S) buffer: row statistics, and pooled tiles. Both
// recompute scores from query and key, tile by tile, and the pattern as exp(scores - log_sum_exp).
// Conventions as in kernels.h; the specification is in kernels/reference.
#pragma once

#include "kernels/operands.h"

namespace heed::kernels {

// Statistics of every row p of the pattern, before dropout; s is a position of the memory and
// o = S − T + t the query's own. Each is (B, H, T) and overwritten. Where p is zero, masked by
// causality or a window, nothing is added. With a full mask s also runs after o, as noted.
template <class T>
struct AttentionRowStatistics {
  View<T> entropy;    // −Σ p·ln p = log_sum_exp − Σ p·scores, in nats
  View<T> distance;   // Σ p·(o − s)
  View<T> first;      // p[0]
  View<T> self;       // p[o]
  View<T> previous;   // p[o − 1]
  View<T> duplicate;  // Σ p over s < o (full: s ≠ o) whose token is the query's
  View<T> induction;  // Σ p over 1 <= s <= o (full: s ≠ o, o + 1) after a token that is the query's
  View<T> largest;  // the largest p over 1 <= s < o − 1 (full: s ≠ o)
};

// tokens (B, S) of the memory, whose last T are the queries'; absent: duplicate and induction are
// zero. Requires T <= S, also with a full mask.
void attention_row_statistics(const AttentionInput<float>& input, View<const float> log_sum_exp,
                              View<const std::int32_t> tokens,
                              const AttentionRowStatistics<float>& statistics);

// A pooled tile: each cell reduces pool × pool elements, fewer at the end of the tile.
template <class T>
struct PooledAttention {
  View<T> sum;  // (⌈queries / pool⌉, ⌈keys / pool⌉), of unmasked elements; 0 if there are none
  View<T> largest;  // the same shape; if all are masked, 0 for a pattern and −∞ for scores
};

// `pool` is 1, 2, 4, 8, 16, 32 or 64. Pools the pattern, or scores if log_sum_exp is absent.
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
