// Attention in bf16 with AMX, behind ordinary functions: each call runs on one thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention_blocks.h"
#include "kernels/operands.h"

namespace heed::kernels {

// Queries are processed in groups; results do not depend on the split if spans start at a group.
inline constexpr std::int64_t query_group = 32;

struct TileAttention {
  // The largest span whose state stays in the second-level cache.
  std::int64_t (*max_span)(std::int64_t head_size);
  // Queries [begin, end): rows of out and of log_sum_exp.
  void (*attend_span)(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                      float* log_sum_exp);
  // As attend_backward in attention_blocks.h, in its own pieces of the memory.
  std::int64_t (*memory_piece)(std::int64_t head_size);
  void (*attend_backward)(const BackwardGroup& group, std::int64_t part, std::int64_t parts);
};

// Null if the instruction set in use has no tiles.
const TileAttention* tile_attention();

// Where attention with AMX is defined. x86-64 only.

void attend_span_in_tiles(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                          float* log_sum_exp);

std::int64_t tile_memory_piece(std::int64_t head_size);

void attend_backward_in_tiles(const BackwardGroup& group, std::int64_t part, std::int64_t parts);

}  // namespace heed::kernels
