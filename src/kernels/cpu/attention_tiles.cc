#include "kernels/cpu/attention_tiles.h"

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/product_kernels.h"

#if HWY_ARCH_X86_64
#include "kernels/cpu/attention_tiles_x86.h"
#endif

namespace heed::kernels {

#if HWY_ARCH_X86_64

namespace {

// 1024 queries of a head of 64: half a megabyte of them and of their results.
std::int64_t longest_span(std::int64_t head_size) {
  const std::int64_t depth = (head_size + 31) / 32 * 32;
  return std::max(65536 / depth / query_group, std::int64_t{1}) * query_group;
}

template <int parts>
constexpr TileAttention attention_in_parts{
    .longest_span = &longest_span,
    .attend_span = &attend_span_in_tiles<parts>,
    .memory_piece = &tile_memory_piece<parts>,
    .attend_backward = &attend_backward_in_tiles<parts>,
};

}  // namespace

const TileAttention* tile_attention(Precision precision) {
  if (!has_tile_products()) return nullptr;
  return precision == Precision::bf16 ? &attention_in_parts<1> : &attention_in_parts<3>;
}

#else

const TileAttention* tile_attention(Precision) { return nullptr; }

#endif

}  // namespace heed::kernels
