// Where attention with AMX is defined. x86-64 only.
#pragma once

#include "kernels/cpu/attention_blocks.h"

namespace heed::kernels {

void attend_span_in_tiles(const Head& head, std::int64_t begin, std::int64_t end, Rows<float> out,
                          float* log_sum_exp);

std::int64_t tile_memory_piece(std::int64_t head_size);

void attend_backward_in_tiles(const BackwardGroup& group, std::int64_t part, std::int64_t parts);

}  // namespace heed::kernels
