// Tiles, rows and regions of the attention of a recorded pass, edited or not, for zoomable maps and
// thumbnails.
#pragma once

#include <list>
#include <map>
#include <memory>

#include "microscope/attention/attention_maps.h"
#include "microscope/traces/kept_pass.h"

namespace heed {

// Caches what it computes: query and key of each layer used, rearranged, and the coarse levels of
// recently used heads. Not thread-safe.
class KeptAttention {
 public:
  explicit KeptAttention(const KeptPass& pass) : pass_(pass) {}  // borrowed

  // As LazyAttention::region.
  Tensor<float> region(const AttentionRegion& region);

  std::int64_t levels();  // of the map; the last is one tile

  // As AttentionPyramid::tile.
  using Tile = AttentionMapTile;
  Tensor<float> tile(const Tile& tile);

  // Of the cached maps and planes, which are computed again when they are needed. Queries and keys
  // are not among them: see LazyAttention::bytes_needed.
  std::int64_t cached_bytes() const;
  void forget();

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
  std::list<Plane> planes_;  // of heads with an edited pattern, most recently used first
};

}  // namespace heed
