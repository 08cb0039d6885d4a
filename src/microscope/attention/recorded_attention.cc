#include "microscope/attention/recorded_attention.h"

#include <algorithm>

#include "base/error.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

constexpr std::size_t max_planes = 4;

// Queries per step of the build: a multiple of the first kept level's pool, small enough to check
// for a stop request often.
constexpr std::int64_t band = 2048;

std::int64_t cells_of(std::int64_t elements, std::int64_t level) {
  return (elements + (std::int64_t{1} << level) - 1) >> level;
}

void copy_rows(const Tensor<float>& from, std::int64_t first_row, Tensor<float>& to) {
  std::copy_n(from.data(), from.size(), to.data() + first_row * to.shape()[1]);
}

PooledRegion room_for(const Shape& cells) { return {Tensor<float>(cells), Tensor<float>(cells)}; }

}  // namespace

std::int64_t AttentionPyramid::levels_of(std::int64_t side) {
  std::int64_t levels = 1;
  while (cells_of(side, levels - 1) > tile_size) ++levels;
  return levels;
}

AttentionPyramid::AttentionPyramid(const LazyAttention& attention, std::int64_t layer,
                                   std::int64_t head, AttentionValues values)
    : attention_(attention),
      layer_(layer),
      head_(head),
      values_(values),
      queries_(attention.positions(layer)),
      keys_(attention.keys(layer)),
      levels_(levels_of(std::max(queries_, keys_))),
      first_ready_(levels_) {
  require(head >= 0 && head < attention.heads(), ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", head, attention.heads() - 1);
  require(queries_ > 0, ErrorCode::invalid_argument,
          "cannot build a map: no attention was recorded");
}

AttentionPyramid::~AttentionPyramid() {
  stop_ = true;
  if (builder_.joinable()) builder_.join();
}

AttentionPyramid::Tiles AttentionPyramid::tiles(std::int64_t level) const {
  require(level >= 0 && level < levels_, ErrorCode::invalid_argument,
          "level {} does not exist: there are levels 0 to {}", level, levels_ - 1);
  const auto tiles = [](std::int64_t cells) { return (cells + tile_size - 1) / tile_size; };
  return {tiles(cells_of(queries_, level)), tiles(cells_of(keys_, level))};
}

bool AttentionPyramid::ready(std::int64_t level) const {
  return level < first_kept_level || level >= first_ready_;
}

Shape AttentionPyramid::cells_at(std::int64_t level) const {
  return {cells_of(queries_, level), cells_of(keys_, level)};
}

std::int64_t AttentionPyramid::bytes() const {
  std::int64_t cells = 0;
  for (std::int64_t level = first_kept_level; level < levels_; ++level) {
    cells += cells_at(level).size();
  }
  return 2 * cells * static_cast<std::int64_t>(sizeof(float));
}

void AttentionPyramid::build(StopFlag stop) {
  const std::scoped_lock lock(building_);
  if (levels_ > first_kept_level && first_ready_ > first_kept_level) build_levels(stop);
}

void AttentionPyramid::build_in_background() {
  if (builder_.joinable()) return;
  builder_ = std::thread([this] {
    try {
      build(&stop_);
    } catch (const Error&) {
      // Stopped, or out of memory: the next call of tile() builds again and reports the error.
    }
  });
}

void AttentionPyramid::build_levels(StopFlag stop) {
  const std::int64_t pool = std::int64_t{1} << first_kept_level;
  std::vector<PooledRegion> levels;
  levels.push_back(room_for(cells_at(first_kept_level)));
  for (std::int64_t begin = 0; begin < queries_; begin += band) {
    require(!stop_requested(stop), ErrorCode::interrupted, "interrupted");
    const PooledRegion rows = pool_region(attention_, {.layer = layer_,
                                                       .head = head_,
                                                       .query_begin = begin,
                                                       .query_end = begin + band,
                                                       .key_begin = 0,
                                                       .key_end = keys_,
                                                       .pool = pool,
                                                       .values = values_});
    copy_rows(rows.sum, begin / pool, levels.front().sum);
    copy_rows(rows.largest, begin / pool, levels.front().largest);
  }
  while (first_kept_level + std::ssize(levels) < levels_) {
    levels.push_back(pool_further(levels.back(), 2));
  }
  kept_ = std::move(levels);
  for (std::int64_t level = levels_; level > first_kept_level; --level) first_ready_ = level - 1;
}

AttentionRegion AttentionPyramid::region(std::int64_t level, std::int64_t row, std::int64_t column,
                                         Pooling pooling) const {
  const Tiles there = tiles(level);
  require(row >= 0 && row < there.rows && column >= 0 && column < there.columns,
          ErrorCode::invalid_argument,
          "tile ({}, {}) does not exist: level {} has {} rows and {} columns of them", row, column,
          level, there.rows, there.columns);
  const std::int64_t side = tile_size << level;
  return {.layer = layer_,
          .head = head_,
          .query_begin = row * side,
          .query_end = std::min((row + 1) * side, queries_),
          .key_begin = column * side,
          .key_end = std::min((column + 1) * side, keys_),
          .pool = std::int64_t{1} << level,
          .values = values_,
          .pooling = pooling};
}

Tensor<float> AttentionPyramid::tile(std::int64_t level, std::int64_t row, std::int64_t column,
                                     Pooling pooling) {
  const AttentionRegion wanted = region(level, row, column, pooling);
  if (level < first_kept_level) return attention_.region(wanted);
  build();
  const PooledRegion& whole = kept_[static_cast<std::size_t>(level - first_kept_level)];
  const Shape cells = cells_at(level);
  const std::int64_t rows = std::min(tile_size, cells[0] - row * tile_size);
  const std::int64_t columns = std::min(tile_size, cells[1] - column * tile_size);
  PooledRegion cut = room_for({rows, columns});
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t from = (row * tile_size + i) * cells[1] + column * tile_size;
    std::copy_n(whole.sum.data() + from, columns, cut.sum.data() + i * columns);
    std::copy_n(whole.largest.data() + from, columns, cut.largest.data() + i * columns);
  }
  return finish_pooling(attention_, cut, wanted);
}

AttentionPyramid& AttentionMaps::of(const LazyAttention& attention, std::int64_t layer,
                                    std::int64_t head, AttentionValues values) {
  constexpr std::int64_t max_bytes = std::int64_t{1} << 29;
  const auto found = std::ranges::find_if(maps_, [&](const Map& map) {
    return map.attention == &attention && map.layer == layer && map.head == head &&
           map.values == values;
  });
  if (found != maps_.end()) {
    maps_.splice(maps_.begin(), maps_, found);
  } else {
    maps_.push_front({&attention, layer, head, values,
                      std::make_unique<AttentionPyramid>(attention, layer, head, values)});
    while (maps_.size() > 1 && bytes() > max_bytes) maps_.pop_back();
  }
  return *maps_.front().pyramid;
}

std::int64_t AttentionMaps::bytes() const {
  std::int64_t bytes = 0;
  for (const Map& map : maps_) bytes += map.pyramid->bytes();
  return bytes;
}

std::int64_t RecordedAttention::bytes_needed(const Architecture& architecture,
                                             std::int64_t positions, std::int64_t sources) {
  std::int64_t bytes = 0;
  for (const AttentionSite site : sites_of(architecture)) {
    const std::int64_t queries = site.stack == StackSite::encoder ? sources : positions;
    const std::int64_t keys = site.kind == AttentionKind::cross ? sources : queries;
    bytes += architecture.of(site.stack).layers *
             LazyAttention::bytes_needed(attention_of(architecture, site), queries, keys);
  }
  return bytes;
}

const LazyAttention& RecordedAttention::layer(AttentionSite site, std::int64_t layer) {
  const auto sites = sites_of(pass_.architecture());
  const auto index = static_cast<std::size_t>(std::ranges::find(sites, site) - sites.begin());
  std::unique_ptr<LazyAttention>& kept = layers_[{index, layer}];
  if (kept == nullptr) {
    auto made = std::make_unique<LazyAttention>(pass_.architecture(), site, pass_.queries(site),
                                                pass_.keys(site), std::vector{layer});
    made->observe_attention(layer, pass_.attention_input(site, layer),
                            pass_.log_sum_exp(site, layer));
    kept = std::move(made);
  }
  return *kept;
}

// Of the elements of a region, which is within the plane.
View<const float> RecordedAttention::plane_of(AttentionSite site, const AttentionRegion& region) {
  Point point = pattern_point(site, region.layer);
  if (region.values == AttentionValues::scores) point = scores_of(point);
  const auto found = std::ranges::find_if(planes_, [&](const Plane& plane) {
    return plane.point == point && plane.head == region.head;
  });
  if (found != planes_.end()) {
    planes_.splice(planes_.begin(), planes_, found);
  } else {
    planes_.push_front({point, region.head, pass_.plane(point, region.head)});
    if (planes_.size() > max_planes) planes_.pop_back();
  }
  return View<const float>(planes_.front().elements.view())
      .slice(0, region.query_begin, region.query_end)
      .slice(1, region.key_begin, region.key_end);
}

Tensor<float> RecordedAttention::region(AttentionSite site, const AttentionRegion& wanted) {
  const LazyAttention& attention = layer(site, wanted.layer);
  const AttentionRegion region = checked_region(attention, wanted);
  if (!pass_.edits_pattern(site, region.layer, region.head)) return attention.region(region);
  return finish_pooling(attention, pool_elements(plane_of(site, region), region.pool), region);
}

Tensor<float> RecordedAttention::pattern(AttentionSite site, std::int64_t layer,
                                         std::int64_t head) {
  return region(site, {.layer = layer,
                       .head = head,
                       .query_end = pass_.queries(site),
                       .key_end = pass_.keys(site)});
}

std::int64_t RecordedAttention::levels(AttentionSite site) const {
  return AttentionPyramid::levels_of(std::max(pass_.queries(site), pass_.keys(site)));
}

Tensor<float> RecordedAttention::tile(AttentionSite site, const AttentionMapTile& tile) {
  const LazyAttention& attention = layer(site, tile.layer);
  AttentionPyramid& map = maps_.of(attention, tile.layer, tile.head, tile.values);
  if (!pass_.edits_pattern(site, tile.layer, tile.head)) {
    return map.tile(tile.level, tile.row, tile.column, tile.pooling);
  }
  return region(site, map.region(tile.level, tile.row, tile.column, tile.pooling));
}

std::int64_t RecordedAttention::cached_bytes() const {
  std::int64_t bytes = maps_.bytes();
  for (const Plane& plane : planes_) bytes += plane.elements.size() * std::int64_t{sizeof(float)};
  return bytes;
}

void RecordedAttention::forget() {
  maps_ = {};
  planes_.clear();
}

}  // namespace heed
