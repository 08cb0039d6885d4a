#include "model/cache.h"

#include <algorithm>

#include "base/error.h"
#include "base/threads.h"

namespace heed {
namespace {

// (B, H, capacity, …) from position `first` on, viewed as (B, positions, H, …).
template <class T>
View<T> positions_first(View<T> heads_first, std::int64_t first, std::int64_t positions) {
  View<T> from = heads_first.slice(2, first, first + positions);
  if (from.rank() == 3) {
    return {from.data(),
            {from.extent(0), positions, from.extent(1)},
            {from.stride(0), from.stride(2), from.stride(1)}};
  }
  return {from.data(),
          {from.extent(0), positions, from.extent(1), from.extent(3)},
          {from.stride(0), from.stride(2), from.stride(1), from.stride(3)}};
}

constexpr std::int64_t elements_per_thread = 16384;  // at least: some microseconds of copying

void copy_rows(View<const float> from, View<float> to) {
  const std::int64_t positions = from.extent(1), heads = from.extent(2), size = from.extent(3);
  const std::int64_t grain = elements_per_thread / std::max<std::int64_t>(heads * size, 1) + 1;
  parallel_ranges(from.extent(0) * positions, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t b = row / positions, t = row % positions;
      for (std::int64_t h = 0; h < heads; ++h) {
        std::copy_n(&from(b, t, h, 0), size, &to(b, t, h, 0));
      }
    }
  });
}

}  // namespace

std::int64_t cache_bytes(const GptConfig& config, CacheType type, std::int64_t positions) {
  return 2 * config.layers * positions * config.heads *
         kernels::cache_row_bytes_with_scale(type, config.head_size);
}

KeyValueCache::KeyValueCache(const GptConfig& config, std::int64_t batch, std::int64_t capacity,
                             CacheType type)
    : type_(type),
      shape_{config.layers, batch, config.heads, capacity, config.head_size},
      keys_(make_memory()),
      values_(make_memory()) {}

KeyValueCache::Memory KeyValueCache::make_memory() const {
  if (type_ == CacheType::f32) return {.numbers = Tensor<float>(shape_)};
  const Shape rows{shape_[0], shape_[1], shape_[2], shape_[3]};
  Memory memory{.quantised = Tensor<std::byte>(Shape{rows[0], rows[1], rows[2], rows[3],
                                                     kernels::cache_row_bytes(type_, shape_[4])})};
  if (type_ == CacheType::int8) memory.scales = Tensor<float>(rows);
  return memory;
}

void KeyValueCache::truncate(std::int64_t length) {
  check(length >= 0 && length <= length_, "a cache is truncated to at most its length");
  length_ = length;
}

void KeyValueCache::advance(std::int64_t positions) {
  check(length_ + positions <= capacity(), "positions stored in the cache");
  length_ += positions;
}

void KeyValueCache::store(std::int64_t layer, View<const float> key, View<const float> value) {
  require(layer >= 0 && layer < shape_[0], ErrorCode::invalid_argument,
          "the key-value cache has layers 0 to {}, not {}", shape_[0] - 1, layer);
  const Shape expected{shape_[1], key.extent(1), shape_[2], shape_[4]};
  require_shape(key, expected, "keys for the cache");
  require_shape(value, expected, "values for the cache");
  const std::int64_t end = length_ + key.extent(1);
  require(end <= capacity(), ErrorCode::invalid_argument,
          "the key-value cache has room for {} positions, not for {}", capacity(), end);
  store(layer, key, keys_);
  store(layer, value, values_);
}

void KeyValueCache::store(std::int64_t layer, View<const float> rows, Memory& memory) const {
  const std::int64_t count = rows.extent(1);
  if (type_ == CacheType::f32) {
    return copy_rows(rows, positions_first(memory.numbers.view()[layer], length_, count));
  }
  kernels::MutableQuantisedRows to{
      .type = type_, .rows = positions_first(memory.quantised.view()[layer], length_, count)};
  if (type_ == CacheType::int8) {
    to.scales = positions_first(memory.scales.view()[layer], length_, count);
  }
  kernels::quantise_rows(rows, to);
}

View<const float> KeyValueCache::numbers(const Memory& memory, std::int64_t layer,
                                         std::int64_t positions) const {
  check(type_ == CacheType::f32, "an f32 cache");
  return positions_first(memory.numbers.view()[layer], 0, positions);
}

kernels::ConstQuantisedRows KeyValueCache::quantised(const Memory& memory, std::int64_t layer,
                                                     std::int64_t positions) const {
  check(type_ != CacheType::f32, "a quantised cache");
  kernels::ConstQuantisedRows rows{
      .type = type_, .rows = positions_first(memory.quantised.view()[layer], 0, positions)};
  if (type_ == CacheType::int8) {
    rows.scales = positions_first(memory.scales.view()[layer], 0, positions);
  }
  return rows;
}

View<const float> KeyValueCache::keys(std::int64_t layer, std::int64_t positions) const {
  return numbers(keys_, layer, positions);
}

View<const float> KeyValueCache::values(std::int64_t layer, std::int64_t positions) const {
  return numbers(values_, layer, positions);
}

kernels::ConstQuantisedRows KeyValueCache::quantised_keys(std::int64_t layer,
                                                          std::int64_t positions) const {
  return quantised(keys_, layer, positions);
}

kernels::ConstQuantisedRows KeyValueCache::quantised_values(std::int64_t layer,
                                                            std::int64_t positions) const {
  return quantised(values_, layer, positions);
}

}  // namespace heed
