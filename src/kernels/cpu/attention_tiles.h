// Attention with AMX, behind ordinary functions: each call runs on one thread.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention_blocks.h"
#include "kernels/operands.h"

namespace heed::kernels {

// Queries are handled by groups that results do not depend on beyond; spans begin at such groups.
inline constexpr std::int64_t query_group = 32;

struct TileAttention {
  // Most queries of a span: what is kept of each stays in the second-level cache.
  std::int64_t (*longest_span)(std::int64_t head_size);
  // Queries [begin, end): rows of out and of log_sum_exp.
  void (*attend_span)(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                      float* log_sum_exp);
  // As attend_backward in attention_blocks.h, in its own pieces of the memory.
  std::int64_t (*memory_piece)(std::int64_t head_size);
  void (*attend_backward)(const Head& head, const HeadGradients& gradients, std::int64_t part,
                          std::int64_t parts);
};

// Null where the instruction set in use has no tiles.
const TileAttention* tile_attention(Precision precision);

}  // namespace heed::kernels
