// The vectorised parts of attention, behind ordinary functions: each call runs on one thread and
// with the instruction set in use.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention_head.h"

namespace heed::kernels {

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
};

// Key tiles `part`, `part` + `parts`, ...: their rows of the key and value gradients, and their
// partial query gradient.
void attend_backward(const Head& head, const HeadGradients& gradients, std::int64_t part,
                     std::int64_t parts);

// Scores (log_sum_exp null) or pattern of a rectangle of at most query_block × key_block.
void attend_tile(const Head& head, std::int64_t query_begin, std::int64_t query_end,
                 std::int64_t key_begin, std::int64_t key_end, const float* log_sum_exp,
                 Rows<float> out);

}  // namespace heed::kernels
