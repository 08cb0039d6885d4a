// The maps of the heads looked at last.
#pragma once

#include <list>
#include <memory>

#include "microscope/attention/attention_pyramid.h"

namespace heed {

class AttentionMaps {
 public:
  // The map of a head, made when it is first asked for; `attention` is borrowed, and the same for
  // the same layer. What all kept ones take together is at most 512 MiB; one is kept in any case.
  AttentionPyramid& of(const LazyAttention& attention, std::int64_t layer, std::int64_t head,
                       AttentionValues values);

 private:
  struct Map {
    std::int64_t layer;
    std::int64_t head;
    AttentionValues values;
    std::unique_ptr<AttentionPyramid> pyramid;
  };

  std::list<Map> maps_;  // the one used last first
};

}  // namespace heed
