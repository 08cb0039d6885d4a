#include "model/cache.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

// (B, H, capacity, D) seen as (B, positions, H, D).
template <class T>
View<T> positions_first(View<T> heads_first, std::int64_t positions) {
  return {
      heads_first.data(),
      {heads_first.extent(0), positions, heads_first.extent(1), heads_first.extent(3)},
      {heads_first.stride(0), heads_first.stride(2), heads_first.stride(1), heads_first.stride(3)}};
}

void copy_rows(View<const float> from, View<float> to, std::int64_t first_position) {
  const std::int64_t head_size = from.extent(3);
  for (std::int64_t b = 0; b < from.extent(0); ++b) {
    for (std::int64_t t = 0; t < from.extent(1); ++t) {
      for (std::int64_t h = 0; h < from.extent(2); ++h) {
        std::copy_n(&from(b, t, h, 0), head_size, &to(b, first_position + t, h, 0));
      }
    }
  }
}

}  // namespace

KeyValueCache::KeyValueCache(const GptConfig& config, std::int64_t batch, std::int64_t capacity) {
  const Shape shape{config.layers, batch, config.heads, capacity, config.head_size};
  keys_ = Tensor<float>(shape);
  values_ = Tensor<float>(shape);
}

void KeyValueCache::truncate(std::int64_t length) {
  check(length >= 0 && length <= length_, "a cache can only be shortened");
  length_ = length;
}

void KeyValueCache::advance(std::int64_t positions) {
  check(length_ + positions <= capacity(), "positions stored in the cache");
  length_ += positions;
}

void KeyValueCache::store(std::int64_t layer, View<const float> key, View<const float> value) {
  const std::int64_t end = length_ + key.extent(1);
  require(end <= capacity(), ErrorCode::invalid_argument,
          "the key-value cache has room for {} positions, not for {}", capacity(), end);
  copy_rows(key, positions_first(keys_.view()[layer], capacity()), length_);
  copy_rows(value, positions_first(values_.view()[layer], capacity()), length_);
}

View<const float> KeyValueCache::keys(std::int64_t layer, std::int64_t positions) const {
  return positions_first(keys_.view()[layer], positions);
}

View<const float> KeyValueCache::values(std::int64_t layer, std::int64_t positions) const {
  return positions_first(values_.view()[layer], positions);
}

}  // namespace heed
