#include "microscope/kept_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace heed {
namespace {

constexpr std::size_t most_maps = 16;
constexpr std::size_t most_planes = 4;

// Sums and largest elements of a region of a plane that is in memory.
PooledRegion pool_plane(const Tensor<float>& plane, const AttentionRegion& region) {
  const Shape cells{(region.query_end - region.query_begin + region.pool - 1) / region.pool,
                    (region.key_end - region.key_begin + region.pool - 1) / region.pool};
  PooledRegion pooled{Tensor<float>(cells), Tensor<float>(cells)};
  pooled.largest.fill(-std::numeric_limits<float>::infinity());
  for (std::int64_t t = region.query_begin; t < region.query_end; ++t) {
    const std::int64_t i = (t - region.query_begin) / region.pool;
    for (std::int64_t s = region.key_begin; s < region.key_end; ++s) {
      const std::int64_t j = (s - region.key_begin) / region.pool;
      const float value = plane.view()(t, s);
      if (std::isfinite(value)) pooled.sum.view()(i, j) += value;
      float& largest = pooled.largest.view()(i, j);
      largest = std::max(largest, value);
    }
  }
  return pooled;
}

}  // namespace

const LazyAttention& KeptAttention::layer(std::int64_t layer) {
  std::unique_ptr<LazyAttention>& kept = layers_[layer];
  if (kept == nullptr) {
    const GptConfig& config = pass_.gpt().config();
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
    const Point point = values == AttentionValues::pattern ? Point::pattern : Point::scores;
    planes_.push_front({layer, head, values, pass_.plane({point, layer}, head)});
    if (planes_.size() > most_planes) planes_.pop_back();
  }
  return planes_.front().elements;
}

AttentionPyramid& KeptAttention::map_of(std::int64_t layer, std::int64_t head,
                                        AttentionValues values) {
  const auto found = std::ranges::find_if(maps_, [&](const Map& map) {
    return map.layer == layer && map.head == head && map.values == values;
  });
  if (found != maps_.end()) {
    maps_.splice(maps_.begin(), maps_, found);
  } else {
    maps_.push_front({layer, head, values,
                      std::make_unique<AttentionPyramid>(this->layer(layer), layer, head, values)});
    if (maps_.size() > most_maps) maps_.pop_back();
  }
  return *maps_.front().pyramid;
}

Tensor<float> KeptAttention::region(const AttentionRegion& wanted) {
  const LazyAttention& attention = layer(wanted.layer);
  if (wanted.head < 0 || wanted.head >= attention.heads() ||
      !pass_.edits_pattern(wanted.layer, wanted.head)) {
    return attention.region(wanted);
  }
  const AttentionRegion region = checked_region(attention, wanted);
  return finish_pooling(pool_plane(plane_of(region.layer, region.head, region.values), region),
                        region);
}

std::int64_t KeptAttention::levels() {
  return AttentionPyramid(layer(0), 0, 0, AttentionValues::pattern).levels();
}

Tensor<float> KeptAttention::tile(const Tile& tile) {
  const LazyAttention& attention = layer(tile.layer);
  AttentionPyramid& map = map_of(tile.layer, tile.head, tile.values);
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
  return finish_pooling(pool_plane(plane_of(tile.layer, tile.head, tile.values), region), region);
}

}  // namespace heed
