// The preconditions of attention_summaries.h, for the fast path and the reference.
#pragma once

#include "kernels/attention_summaries.h"
#include "kernels/operand_checks.h"

namespace heed::kernels::checks {

template <class T>
void whole_memory(const AttentionInput<T>& input) {
  require(input.query_offset == 0, ErrorCode::invalid_argument,
          "summaries of queries {} positions behind the memory: expected a whole memory",
          input.query_offset);
}

template <class T>
void row_statistics(const AttentionInput<T>& input, const View<const T>& log_sum_exp,
                    const View<const std::int32_t>& tokens,
                    const AttentionRowStatistics<T>& statistics) {
  attention_pattern(input, log_sum_exp);
  whole_memory(input);
  require(input.query.extent(1) <= input.key.extent(1), ErrorCode::invalid_argument,
          "row statistics of {} queries need a memory at least as long, not {}",
          input.query.extent(1), input.key.extent(1));
  if (tokens.present())
    contiguous(tokens, Shape{input.key.extent(0), input.key.extent(1)}, "tokens");
  const Shape rows = log_sum_exp.shape();
  contiguous(statistics.entropy, rows, "entropy");
  contiguous(statistics.distance, rows, "distance");
  contiguous(statistics.first, rows, "first");
  contiguous(statistics.self, rows, "self");
  contiguous(statistics.previous, rows, "previous");
  contiguous(statistics.duplicate, rows, "duplicate");
  contiguous(statistics.induction, rows, "induction");
  contiguous(statistics.largest, rows, "largest");
}

template <class T>
void pooled_tile(const AttentionInput<T>& input, const AttentionTile& tile, std::int64_t pool,
                 const PooledAttention<T>& out) {
  require(pool >= 1 && pool <= 64 && (pool & (pool - 1)) == 0, ErrorCode::invalid_argument,
          "a pool of {} is not 1, 2, 4, 8, 16, 32 or 64", pool);
  attention_rectangle(input, tile);
  whole_memory(input);
  const Shape cells{(tile.query_end - tile.query_begin + pool - 1) / pool,
                    (tile.key_end - tile.key_begin + pool - 1) / pool};
  for (const View<T>& view : {out.sum, out.largest}) {
    require_shape(view, cells, "out");
    require(view.extent(1) <= 1 || view.stride(1) == 1, ErrorCode::invalid_argument,
            "the last dimension of out must be dense");
  }
}

}  // namespace heed::kernels::checks
