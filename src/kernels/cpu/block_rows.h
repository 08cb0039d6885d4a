// Rows of GGUF's blocks, laid out as panels of the same integers and scales.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu/prepared_formats.h"

namespace heed::kernels {

// Whether the scales of all blocks are finite.
bool has_finite_scales(WeightFormat format, std::span<const std::byte> blocks);

// Writes output `output` of a panel from its row of blocks.
void write_block_row(WeightFormat format, const std::byte* row, std::int64_t output,
                     const PanelShape& shape, const NewPanel& to);

}  // namespace heed::kernels
