#include "microscope/attention/pair_attention.h"

#include <algorithm>

#include "base/error.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

constexpr std::size_t most_layer_planes = 4;

// Adds a row of weights, summed over the tokens of each word, times `share`.
void add_by_words(std::span<const float> weights, std::span<const TextWord> words, double share,
                  std::span<float> out) {
  for (std::size_t word = 0; word < words.size(); ++word) {
    double sum = 0;
    for (std::int64_t s = words[word].begin; s < words[word].end; ++s) {
      sum += weights[static_cast<std::size_t>(s)];
    }
    out[word] += static_cast<float>(share * sum);
  }
}

}  // namespace

const PairAttention::Plane& PairAttention::plane_of(AttentionSite kind, std::int64_t layer,
                                                    AttentionValues values) {
  const auto found = std::ranges::find_if(planes_, [&](const Plane& plane) {
    return plane.kind == kind && plane.layer == layer && plane.values == values;
  });
  if (found != planes_.end()) {
    planes_.splice(planes_.begin(), planes_, found);
    return planes_.front();
  }
  Point point = pattern_point(kind, layer);
  if (values == AttentionValues::scores) {
    point.kind = kind == cross_site ? PointKind::cross_scores : PointKind::scores;
  }
  Capture capture(std::vector<Point>{point});
  pass_.replay(capture);
  planes_.push_front({kind, layer, values, capture.take(point)});
  if (planes_.size() > most_layer_planes) planes_.pop_back();
  return planes_.front();
}

Tensor<float> PairAttention::region(AttentionSite kind, const AttentionRegion& wanted) {
  const LazyAttention& attention = pass_.attention(kind);
  const AttentionRegion region = checked_region(attention, wanted);
  if (!pass_.edits_pattern(kind, region.layer, region.head)) return attention.region(region);
  const View<const float> plane =
      plane_of(kind, region.layer, region.values).heads.view()[0][region.head];
  return finish_pooling(attention,
                        pool_elements(plane.slice(0, region.query_begin, region.query_end)
                                          .slice(1, region.key_begin, region.key_end),
                                      region.pool),
                        region);
}

Tensor<float> PairAttention::pattern(AttentionSite kind, std::int64_t layer, std::int64_t head) {
  return region(kind, {.layer = layer,
                       .head = head,
                       .query_end = pass_.queries(kind),
                       .key_end = pass_.keys(kind)});
}

std::int64_t PairAttention::levels(AttentionSite kind) const {
  const std::int64_t side = std::max(pass_.queries(kind), pass_.keys(kind));
  std::int64_t levels = 1;
  while ((tile_size << (levels - 1)) < side) ++levels;
  return levels;
}

Tensor<float> PairAttention::tile(AttentionSite kind, const AttentionMapTile& tile) {
  const std::int64_t last = levels(kind) - 1;
  require(tile.level >= 0 && tile.level <= last, ErrorCode::invalid_argument,
          "level {} does not exist: the map has levels 0 to {}", tile.level, last);
  const std::int64_t elements = tile_size << tile.level;
  const auto tiles = [&](std::int64_t positions) { return (positions + elements - 1) / elements; };
  const std::int64_t rows = tiles(pass_.queries(kind)), columns = tiles(pass_.keys(kind));
  require(tile.row >= 0 && tile.row < rows && tile.column >= 0 && tile.column < columns,
          ErrorCode::invalid_argument,
          "tile ({}, {}) does not exist: level {} has {} rows and {} columns of them", tile.row,
          tile.column, tile.level, rows, columns);
  return region(kind, {.layer = tile.layer,
                       .head = tile.head,
                       .query_begin = tile.row * elements,
                       .query_end = (tile.row + 1) * elements,
                       .key_begin = tile.column * elements,
                       .key_end = (tile.column + 1) * elements,
                       .pool = std::int64_t{1} << tile.level,
                       .values = tile.values,
                       .pooling = tile.pooling});
}

Tensor<float> by_words(View<const float> pattern, std::span<const TextWord> queries,
                       std::span<const TextWord> keys, WordRow row) {
  Tensor<float> words(Shape{std::ssize(queries), std::ssize(keys)});
  for (std::size_t word = 0; word < queries.size(); ++word) {
    std::int64_t begin = queries[word].last(), end = queries[word].end;
    if (row == WordRow::written && queries[word].begin > 0) {
      begin = queries[word].begin - 1;
      end = queries[word].end - 1;
    }
    const std::span<float> out = words.view()[static_cast<std::int64_t>(word)].span();
    for (std::int64_t t = begin; t < end; ++t) {
      add_by_words(pattern[t].span(), keys, 1.0 / static_cast<double>(end - begin), out);
    }
  }
  return words;
}

}  // namespace heed
