// Zoomable maps of attention, and the attention of a recorded pass as the pass used it, edited or
// not.
#pragma once

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/lazy_attention.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {

// A zoomable map of one head's plane, (queries, keys): at level z a cell pools 2^z × 2^z elements,
// and a tile has 256 × 256 cells. Every cell is exact to rounding. Tiles of levels 0 to 4 are
// computed on demand. A tile of a higher level covers too many elements for that: one pass over the
// plane builds all levels from 5 on, (T/32)² cells and a third more, and keeps them. They become
// available at the end of that pass, the coarsest first.
class AttentionPyramid {
 public:
  static constexpr std::int64_t tile_size = 256;
  static constexpr std::int64_t first_kept_level = 5;
  struct Tiles {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };

  // Borrows `attention`, which must not grow during the map's lifetime. Throws what
  // LazyAttention::region throws.
  AttentionPyramid(const LazyAttention& attention, std::int64_t layer, std::int64_t head,
                   AttentionValues values = AttentionValues::pattern);
  ~AttentionPyramid();  // stops building
  AttentionPyramid(const AttentionPyramid&) = delete;
  AttentionPyramid& operator=(const AttentionPyramid&) = delete;

  // Of a plane whose longer side has so many elements; the last level is one tile.
  static std::int64_t levels_of(std::int64_t side);

  std::int64_t levels() const { return levels_; }
  Tiles tiles(std::int64_t level) const;
  bool ready(std::int64_t level) const;
  std::int64_t bytes() const;  // of the levels that are kept

  // Builds the levels that are kept: before returning, or on a background thread.
  void build(StopFlag stop = nullptr);
  void build_in_background();

  // The elements that tile (row, column) of a level covers, cut off at the end of the plane. Throws
  // Error{invalid_argument} for a level or tile that does not exist.
  AttentionRegion region(std::int64_t level, std::int64_t row, std::int64_t column,
                         Pooling pooling) const;
  // Its cells. Waits for a level that is being built, and builds one that is not.
  Tensor<float> tile(std::int64_t level, std::int64_t row, std::int64_t column, Pooling pooling);

 private:
  void build_levels(StopFlag stop);
  Shape cells_at(std::int64_t level) const;

  const LazyAttention& attention_;
  std::int64_t layer_;
  std::int64_t head_;
  AttentionValues values_;
  std::int64_t queries_;
  std::int64_t keys_;
  std::int64_t levels_;
  std::vector<PooledRegion> kept_;         // from first_kept_level on
  std::atomic<std::int64_t> first_ready_;  // levels from this one on can be read
  std::mutex building_;
  std::atomic<bool> stop_{false};
  std::thread builder_;
};

// A least-recently-used cache of them.
class AttentionMaps {
 public:
  // Returns the map of a head, created on first use. `attention` is borrowed and must be the same
  // object on every call for a layer. The cache keeps at least one map and at most 512 MiB.
  AttentionPyramid& of(const LazyAttention& attention, std::int64_t layer, std::int64_t head,
                       AttentionValues values);

  std::int64_t bytes() const;  // of all maps

 private:
  struct Map {
    const LazyAttention* attention;
    std::int64_t layer;
    std::int64_t head;
    AttentionValues values;
    std::unique_ptr<AttentionPyramid> pyramid;
  };

  std::list<Map> maps_;  // most recently used first
};

// Tiles, rows and regions of every attention of a recorded pass. Caches what it computes: query and
// key of each layer used, rearranged; the coarse levels of recently used heads; planes of heads
// with an edited pattern. Not thread-safe.
class RecordedAttention {
 public:
  explicit RecordedAttention(const RecordedPass& pass) : pass_(pass) {}  // borrowed

  // Bytes of the queries and keys of every layer, for texts of these lengths.
  static std::int64_t bytes_needed(const Architecture& architecture, std::int64_t positions,
                                   std::int64_t sources = 0);

  // As LazyAttention::region; rows are queries, columns keys.
  Tensor<float> region(AttentionSite site, const AttentionRegion& region);
  // One head's whole pattern, (queries, keys).
  Tensor<float> pattern(AttentionSite site, std::int64_t layer, std::int64_t head);

  std::int64_t levels(AttentionSite site) const;  // of the map; the last is one tile
  Tensor<float> tile(AttentionSite site, const AttentionMapTile& tile);

  // Attention without edits of its scores or patterns.
  const LazyAttention& layer(AttentionSite site, std::int64_t layer);

  // Of the cached maps and planes, which are computed again when they are needed.
  std::int64_t cached_bytes() const;
  void forget();

 private:
  struct Plane {
    Point point;
    std::int64_t head;
    Tensor<float> elements;  // (queries, keys)
  };
  View<const float> plane_of(AttentionSite site, const AttentionRegion& region);

  const RecordedPass& pass_;
  std::map<std::pair<std::size_t, std::int64_t>, std::unique_ptr<LazyAttention>> layers_;
  AttentionMaps maps_;
  std::list<Plane> planes_;  // of heads with an edited pattern, most recently used first
};

}  // namespace heed
