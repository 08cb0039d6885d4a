// A least-recently-used cache of attention maps.
#pragma once

#include <list>
#include <memory>

#include "microscope/attention/attention_pyramid.h"

namespace heed {

class AttentionMaps {
 public:
  // Returns the map of a head, created on first use. `attention` is borrowed and must be the same
  // object on every call for a layer. The cache keeps at least one map and at most 512 MiB.
  AttentionPyramid& of(const LazyAttention& attention, std::int64_t layer, std::int64_t head,
                       AttentionValues values);

  std::int64_t bytes() const;  // of all maps

 private:
  struct Map {
    std::int64_t layer;
    std::int64_t head;
    AttentionValues values;
    std::unique_ptr<AttentionPyramid> pyramid;
  };

  std::list<Map> maps_;  // most recently used first
};

}  // namespace heed
