#include "microscope/attention/kept_attention.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::size_t most_planes = 4;

// Cells of a region of a plane (T, T) that is in memory.
Tensor<float> pooled_plane(const LazyAttention& attention, const Tensor<float>& plane,
                           const AttentionRegion& region) {
  const View<const float> elements = plane.view()
                                         .slice(0, region.query_begin, region.query_end)
                                         .slice(1, region.key_begin, region.key_end);
  return finish_pooling(attention, pool_elements(elements, region.pool), region);
}

}  // namespace

const LazyAttention& KeptAttention::layer(std::int64_t layer) {
  std::unique_ptr<LazyAttention>& kept = layers_[layer];
  if (kept == nullptr) {
    const StackSpecification& config = pass_.gpt().specification();
    auto made = std::make_unique<LazyAttention>(config, std::vector{layer}, pass_.positions());
    made->observe_attention(layer, pass_.attention_input(layer),
                            pass_.activations().block(layer).attention.log_sum_exp);
    kept = std::move(made);
  }
  return *kept;
}

const Tensor<float>& KeptAttention::plane_of(std::int64_t layer, std::int64_t head,
                                             AttentionValues values) {
  const auto found = std::ranges::find_if(planes_, [&](const Plane& plane) {
    return plane.layer == layer && plane.head == head && plane.values == values;
  });
  if (found != planes_.end()) {
    planes_.splice(planes_.begin(), planes_, found);
  } else {
    const PointKind kind =
        values == AttentionValues::pattern ? PointKind::pattern : PointKind::scores;
    planes_.push_front({layer, head, values, pass_.plane({kind, layer}, head)});
    if (planes_.size() > most_planes) planes_.pop_back();
  }
  return planes_.front().elements;
}

Tensor<float> KeptAttention::region(const AttentionRegion& wanted) {
  const LazyAttention& attention = layer(wanted.layer);
  if (wanted.head < 0 || wanted.head >= attention.heads() ||
      !pass_.edits_pattern(wanted.layer, wanted.head)) {
    return attention.region(wanted);
  }
  const AttentionRegion region = checked_region(attention, wanted);
  return pooled_plane(attention, plane_of(region.layer, region.head, region.values), region);
}

std::int64_t KeptAttention::levels() {
  return AttentionPyramid(layer(0), 0, 0, AttentionValues::pattern).levels();
}

Tensor<float> KeptAttention::tile(const Tile& tile) {
  const LazyAttention& attention = layer(tile.layer);
  AttentionPyramid& map = maps_.of(attention, tile.layer, tile.head, tile.values);
  if (!pass_.edits_pattern(tile.layer, tile.head)) {
    return map.tile(tile.level, tile.row, tile.column, tile.pooling);
  }
  const std::int64_t side = map.tiles(tile.level);
  require(tile.row >= 0 && tile.row < side && tile.column >= 0 && tile.column < side,
          ErrorCode::invalid_argument, "tile ({}, {}) does not exist: level {} has {} a side",
          tile.row, tile.column, tile.level, side);
  const std::int64_t elements = AttentionPyramid::tile_size << tile.level;
  const AttentionRegion wanted{.layer = tile.layer,
                               .head = tile.head,
                               .query_begin = tile.row * elements,
                               .query_end = (tile.row + 1) * elements,
                               .key_begin = tile.column * elements,
                               .key_end = (tile.column + 1) * elements,
                               .pool = std::int64_t{1} << tile.level,
                               .values = tile.values,
                               .pooling = tile.pooling};
  const AttentionRegion region = checked_region(attention, wanted);
  return pooled_plane(attention, plane_of(tile.layer, tile.head, tile.values), region);
}

std::int64_t KeptAttention::cached_bytes() const {
  std::int64_t bytes = maps_.bytes();
  for (const Plane& plane : planes_) bytes += plane.elements.size() * std::int64_t{sizeof(float)};
  return bytes;
}

void KeptAttention::forget() {
  maps_ = {};
  planes_.clear();
}

}  // namespace heed
