// The vectorised parts of attention, behind ordinary functions: each call runs on one thread and
// with the instruction set in use.
#pragma once

#include <cstdint>

#include "base/threads.h"
#include "kernels/cpu/attention_head.h"

namespace heed::kernels {

// Whether `count` pieces of equal work keep all threads busy to the end, or nearly.
inline bool divides_evenly(std::int64_t count) {
  const std::int64_t threads = thread_count();
  return count % threads == 0 || count >= 8 * threads;
}

// Floats that pack_memory needs for one head.
std::int64_t packed_memory_size(const Head& head);

// The head with its keys and values copied to dense rows in `buffer`. In the output of projections,
// rows are kilobytes apart, which causes conflict misses on every later visit.
Head pack_memory(const Head& head, float* buffer);

// Queries [begin, end), at most query_block of them: rows of out and of log_sum_exp.
void attend_block(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                  float* log_sum_exp);

// Operands of backward for one head; gradients are overwritten.
struct HeadGradients {
  Rows<const float> out;
  Rows<const float> d_out;
  const float* log_sum_exp = nullptr;  // (T)
  Rows<float> query;
  Rows<float> key;
  Rows<float> value;
  float* bias =
      nullptr;  // (S + T − 1): scale times the sum for each s − t + T − 1; null: not wanted
};

// The query heads that share a key head of a batch element, and what backward reads and writes.
struct BackwardGroup {
  const AttentionInput<float>& input;
  View<const float> out;          // (B, T, H, D)
  View<const float> log_sum_exp;  // (B, H, T)
  View<const float> d_out;        // (B, T, H, D)
  const AttentionGradients<float>& results;
  std::int64_t batch;
  std::int64_t first;              // query head
  std::int64_t heads;              // query heads
  float* partial_query = nullptr;  // (heads, T, D), written instead of the query gradient
  float* partial_bias = nullptr;   // (heads, S + T − 1), see HeadGradients; null: not wanted

  std::int64_t distances() const { return input.key.extent(1) + input.query.extent(1) - 1; }
  Head head(std::int64_t k) const { return head_of(input, batch, first + k); }
  HeadGradients gradients(std::int64_t k) const {
    const std::int64_t h = first + k, g = first / heads;
    const std::int64_t queries = input.query.extent(1), size = input.query.extent(3);
    return {.out = head_rows(out, batch, h),
            .d_out = head_rows(d_out, batch, h),
            .log_sum_exp = &log_sum_exp(batch, h, 0),
            .query = partial_query == nullptr
                         ? head_rows(results.query, batch, h)
                         : Rows<float>{partial_query + k * queries * size, size},
            .key = head_rows(results.key, batch, g),
            .value = head_rows(results.value, batch, g),
            .bias = partial_bias == nullptr ? nullptr : partial_bias + k * distances()};
  }
};

// Key tiles `part`, `part` + `parts`, ...: their rows of the key and value gradients, summed over
// the heads of the group in order, and the heads' partial query gradients.
void attend_backward(const BackwardGroup& group, std::int64_t part, std::int64_t parts);

// Scores (log_sum_exp null) or pattern of a rectangle of at most query_block × key_block.
void attend_tile(const Head& head, std::int64_t query_begin, std::int64_t query_end,
                 std::int64_t key_begin, std::int64_t key_end, const float* log_sum_exp,
                 Rows<float> out);

}  // namespace heed::kernels
