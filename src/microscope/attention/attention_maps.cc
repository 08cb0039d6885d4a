#include "microscope/attention/attention_maps.h"

#include <algorithm>

namespace heed {

AttentionPyramid& AttentionMaps::of(const LazyAttention& attention, std::int64_t layer,
                                    std::int64_t head, AttentionValues values) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 29;
  const auto found = std::ranges::find_if(maps_, [&](const Map& map) {
    return map.layer == layer && map.head == head && map.values == values;
  });
  if (found != maps_.end()) {
    maps_.splice(maps_.begin(), maps_, found);
  } else {
    maps_.push_front(
        {layer, head, values, std::make_unique<AttentionPyramid>(attention, layer, head, values)});
    const std::int64_t bytes =
        maps_.front().pyramid->bytes();  // of each map: all cover the same positions
    while (maps_.size() > 1 && std::ssize(maps_) * bytes > most_bytes) maps_.pop_back();
  }
  return *maps_.front().pyramid;
}

std::int64_t AttentionMaps::bytes() const {
  std::int64_t bytes = 0;
  for (const Map& map : maps_) bytes += map.pyramid->bytes();
  return bytes;
}

}  // namespace heed
