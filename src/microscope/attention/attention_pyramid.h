// A zoomable map of one head's (T, T) plane: at level z a cell pools 2^z × 2^z elements, and a tile
// has 256 × 256 cells. Every cell is exact to rounding.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/progress.h"
#include "microscope/attention/lazy_attention.h"

namespace heed {

// Tiles of levels 0 to 4 are computed on demand. A tile of a higher level covers too many elements
// for that: one pass over the plane builds all levels from 5 on, (T/32)² cells and a third more,
// and keeps them. They become available at the end of that pass, the coarsest first.
class AttentionPyramid {
 public:
  static constexpr std::int64_t tile_size = 256;
  static constexpr std::int64_t first_kept_level = 5;

  // Borrows `attention`, which must not grow during the map's lifetime. Throws what
  // LazyAttention::region throws.
  AttentionPyramid(const LazyAttention& attention, std::int64_t layer, std::int64_t head,
                   AttentionValues values = AttentionValues::pattern);
  ~AttentionPyramid();  // stops building
  AttentionPyramid(const AttentionPyramid&) = delete;
  AttentionPyramid& operator=(const AttentionPyramid&) = delete;

  std::int64_t levels() const { return levels_; }  // the last is one tile
  std::int64_t tiles(std::int64_t level) const;    // along each side
  bool ready(std::int64_t level) const;
  std::int64_t bytes() const;  // of the levels that are kept

  // Builds the levels that are kept: before returning, or on a background thread.
  void build(StopFlag stop = nullptr);
  void build_in_background();

  // Tile (row, column) of a level, smaller at the end of the plane. Waits for a level that is being
  // built, and builds one that is not. Throws Error{invalid_argument} for a level or tile that does
  // not exist.
  Tensor<float> tile(std::int64_t level, std::int64_t row, std::int64_t column, Pooling pooling);

 private:
  void build_levels(StopFlag stop);
  AttentionRegion region(std::int64_t level, std::int64_t row, std::int64_t column) const;

  const LazyAttention& attention_;
  std::int64_t layer_;
  std::int64_t head_;
  AttentionValues values_;
  std::int64_t positions_;
  std::int64_t levels_;
  std::vector<PooledRegion> kept_;         // from first_kept_level on
  std::atomic<std::int64_t> first_ready_;  // levels from this one on can be read
  std::mutex building_;
  std::atomic<bool> stop_{false};
  std::thread builder_;
};

}  // namespace heed
