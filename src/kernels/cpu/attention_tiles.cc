#include "kernels/cpu/attention_tiles.h"

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/instruction_sets.h"

#if HWY_ARCH_X86_64
#endif

namespace heed::kernels {

#if HWY_ARCH_X86_64

namespace {

// 1024 queries of a head of 64: half a megabyte of them and of their results.
std::int64_t max_span(std::int64_t head_size) {
  const std::int64_t depth = (head_size + 31) / 32 * 32;
  return std::max(65536 / depth / query_group, std::int64_t{1}) * query_group;
}

constexpr TileAttention attention_in_tiles{
    .max_span = &max_span,
    .attend_span = &attend_span_in_tiles,
    .memory_piece = &tile_memory_piece,
    .attend_backward = &attend_backward_in_tiles,
};

}  // namespace

const TileAttention* tile_attention() {
  return has_tile_products() ? &attention_in_tiles : nullptr;
}

#else

const TileAttention* tile_attention() { return nullptr; }

#endif

}  // namespace heed::kernels
