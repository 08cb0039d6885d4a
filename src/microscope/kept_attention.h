// Attention of a pass that was kept, looked at piece by piece, however it was changed: what a map
// that zooms, a row of arcs or a table of thumbnails needs.
#pragma once

#include <list>
#include <map>
#include <memory>

#include "microscope/attention_pyramid.h"
#include "microscope/kept_pass.h"

namespace heed {

// What is computed is kept: query and key of a layer that was looked at, rearranged; the coarse
// levels of the heads looked at last. For one thread at a time.
class KeptAttention {
 public:
  explicit KeptAttention(const KeptPass& pass) : pass_(pass) {}  // borrowed

  // As LazyAttention::region.
  Tensor<float> region(const AttentionRegion& region);

  std::int64_t levels();  // of the map; the last is one tile

  // As AttentionPyramid::tile.
  struct Tile {
    std::int64_t layer = 0;
    std::int64_t head = 0;
    std::int64_t level = 0;
    std::int64_t row = 0;
    std::int64_t column = 0;
    AttentionValues values = AttentionValues::pattern;
    Pooling pooling = Pooling::mean;
  };
  Tensor<float> tile(const Tile& tile);

 private:
  struct Map {
    std::int64_t layer;
    std::int64_t head;
    AttentionValues values;
    std::unique_ptr<AttentionPyramid> pyramid;
  };
  struct Plane {
    std::int64_t layer;
    std::int64_t head;
    AttentionValues values;
    Tensor<float> elements;  // (T, T)
  };
  const LazyAttention& layer(std::int64_t layer);
  AttentionPyramid& map_of(std::int64_t layer, std::int64_t head, AttentionValues values);
  const Tensor<float>& plane_of(std::int64_t layer, std::int64_t head, AttentionValues values);

  const KeptPass& pass_;
  std::map<std::int64_t, std::unique_ptr<LazyAttention>> layers_;
  std::list<Map> maps_;      // the one used last first
  std::list<Plane> planes_;  // of heads whose pattern was edited, likewise
};

}  // namespace heed
