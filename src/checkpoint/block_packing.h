// Rounds numbers to the blocks of weight_blocks.h, each to the nearest value that its block has.
#pragma once

#include <cstddef>
#include <span>

#include "checkpoint/weight_blocks.h"

namespace heed {

// Whether pack_blocks() packs the type: F32, F16, BF16, Q8_0, Q4_0, Q5_0, Q5_1, Q4_K, Q5_K, Q6_K.
bool can_pack(BlockType type);

// Packs whole blocks. Scales of a block are chosen so that its extreme numbers are met; scales and
// minima of K-blocks are rounded themselves before the numbers are. Throws
// Error{invalid_argument} for numbers that are no whole blocks, or bytes that are not theirs, and
// Error{unsupported} for other types.
void pack_blocks(BlockType type, std::span<const float> numbers, std::span<std::byte> blocks);

}  // namespace heed
