#include "microscope/attention/attention_pyramid.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

// Queries per step of the build: a multiple of the first kept level's pool, small enough to check
// for a stop request often.
constexpr std::int64_t band = 2048;

std::int64_t cells_at(std::int64_t positions, std::int64_t level) {
  return (positions + (std::int64_t{1} << level) - 1) >> level;
}

void copy_rows(const Tensor<float>& from, std::int64_t first_row, Tensor<float>& to) {
  std::copy_n(from.data(), from.size(), to.data() + first_row * to.shape()[1]);
}

}  // namespace

AttentionPyramid::AttentionPyramid(const LazyAttention& attention, std::int64_t layer,
                                   std::int64_t head, AttentionValues values)
    : attention_(attention),
      layer_(layer),
      head_(head),
      values_(values),
      positions_(attention.positions(layer)) {
  require(head >= 0 && head < attention.heads(), ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", head, attention.heads() - 1);
  require(positions_ > 0, ErrorCode::invalid_argument,
          "cannot build a map: no attention was recorded");
  levels_ = 1;
  while (cells_at(positions_, levels_ - 1) > tile_size) ++levels_;
  first_ready_ = levels_;
}

AttentionPyramid::~AttentionPyramid() {
  stop_ = true;
  if (builder_.joinable()) builder_.join();
}

std::int64_t AttentionPyramid::tiles(std::int64_t level) const {
  require(level >= 0 && level < levels_, ErrorCode::invalid_argument,
          "level {} does not exist: there are levels 0 to {}", level, levels_ - 1);
  return (cells_at(positions_, level) + tile_size - 1) / tile_size;
}

bool AttentionPyramid::ready(std::int64_t level) const {
  return level < first_kept_level || level >= first_ready_;
}

std::int64_t AttentionPyramid::bytes() const {
  std::int64_t cells = 0;
  for (std::int64_t level = first_kept_level; level < levels_; ++level) {
    cells += cells_at(positions_, level) * cells_at(positions_, level);
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
  const std::int64_t cells = cells_at(positions_, first_kept_level);
  std::vector<PooledRegion> levels;
  levels.push_back({Tensor<float>(Shape{cells, cells}), Tensor<float>(Shape{cells, cells})});
  for (std::int64_t begin = 0; begin < positions_; begin += band) {
    require(!stop_requested(stop), ErrorCode::interrupted, "interrupted");
    const PooledRegion rows = pool_region(attention_, {.layer = layer_,
                                                       .head = head_,
                                                       .query_begin = begin,
                                                       .query_end = begin + band,
                                                       .key_begin = 0,
                                                       .key_end = positions_,
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

AttentionRegion AttentionPyramid::region(std::int64_t level, std::int64_t row,
                                         std::int64_t column) const {
  const std::int64_t side = tile_size << level;
  return {.layer = layer_,
          .head = head_,
          .query_begin = row * side,
          .query_end = std::min((row + 1) * side, positions_),
          .key_begin = column * side,
          .key_end = std::min((column + 1) * side, positions_),
          .pool = std::int64_t{1} << level,
          .values = values_};
}

Tensor<float> AttentionPyramid::tile(std::int64_t level, std::int64_t row, std::int64_t column,
                                     Pooling pooling) {
  const std::int64_t side = tiles(level);
  require(row >= 0 && row < side && column >= 0 && column < side, ErrorCode::invalid_argument,
          "tile ({}, {}) does not exist: level {} has {} a side", row, column, level, side);
  AttentionRegion wanted = region(level, row, column);
  wanted.pooling = pooling;
  if (level < first_kept_level) return attention_.region(wanted);
  build();
  const PooledRegion& whole = kept_[static_cast<std::size_t>(level - first_kept_level)];
  const std::int64_t cells = whole.sum.shape()[0];
  const std::int64_t rows = std::min(tile_size, cells - row * tile_size);
  const std::int64_t columns = std::min(tile_size, cells - column * tile_size);
  PooledRegion cut{Tensor<float>(Shape{rows, columns}), Tensor<float>(Shape{rows, columns})};
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t from = (row * tile_size + i) * cells + column * tile_size;
    std::copy_n(whole.sum.data() + from, columns, cut.sum.data() + i * columns);
    std::copy_n(whole.largest.data() + from, columns, cut.largest.data() + i * columns);
  }
  return finish_pooling(attention_, cut, wanted);
}

}  // namespace heed
