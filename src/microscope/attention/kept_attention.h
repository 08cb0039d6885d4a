// Attention of a pass that was kept, looked at piece by piece, however it was changed: what a map
// that zooms, a row of arcs or a table of thumbnails needs.
#pragma once

#include <list>
#include <map>
#include <memory>

#include "microscope/attention/attention_maps.h"
#include "microscope/traces/kept_pass.h"

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
  using Tile = AttentionMapTile;
  Tensor<float> tile(const Tile& tile);

 private:
  struct Plane {
    std::int64_t layer;
    std::int64_t head;
    AttentionValues values;
    Tensor<float> elements;  // (T, T)
  };
  const LazyAttention& layer(std::int64_t layer);
  const Tensor<float>& plane_of(std::int64_t layer, std::int64_t head, AttentionValues values);

  const KeptPass& pass_;
  std::map<std::int64_t, std::unique_ptr<LazyAttention>> layers_;
  AttentionMaps maps_;
  std::list<Plane> planes_;  // of heads whose pattern was edited, the one used last first
};

}  // namespace heed
