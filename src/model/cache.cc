#include "model/cache.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/elements.h"

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

std::uint64_t next_memory_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

std::int64_t cache_bytes(const StackSpecification& config, CacheType type, std::int64_t positions) {
  return 2 * config.layers * positions * config.key_value_heads() *
         kernels::cache_row_bytes_with_scale(type, config.head_size());
}

KeyValueCache::KeyValueCache(const StackSpecification& config, std::int64_t batch,
                             std::int64_t capacity, CacheType type, Device device)
    : KeyValueCache(config.block.attention, config.layers, batch, capacity, type, device) {}

KeyValueCache::KeyValueCache(const AttentionSpecification& attention, std::int64_t layers,
                             std::int64_t batch, std::int64_t capacity, CacheType type,
                             Device device)
    : type_(type),
      device_(device),
      batch_(batch),
      shape_{layers, batch, attention.key_value_heads, capacity, attention.head_size},
      keys_(make_memory()),
      values_(make_memory()),
      memory_number_(next_memory_number()) {}

KeyValueCache::Memory KeyValueCache::make_memory() const {
  if (type_ == CacheType::f32) return {.numbers = Tensor<float>(shape_, device_)};
  const Shape rows{shape_[0], shape_[1], shape_[2], shape_[3]};
  Memory memory{.quantised = Tensor<std::byte>(Shape{rows[0], rows[1], rows[2], rows[3],
                                                     kernels::cache_row_bytes(type_, shape_[4])},
                                               device_)};
  if (type_ == CacheType::int8) memory.scales = Tensor<float>(rows, device_);
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
  const Shape expected{batch_, key.extent(1), shape_[2], shape_[4]};
  require_shape(key, expected, "keys for the cache");
  require_shape(value, expected, "values for the cache");
  const std::int64_t end = length_ + key.extent(1);
  require(end <= capacity(), ErrorCode::invalid_argument,
          "the key-value cache has room for {} positions, not for {}", capacity(), end);
  store(layer, key, keys_);
  store(layer, value, values_);
}

namespace {

// The first `length` positions of each head of every parent that is not its own child; `to` may be
// `from`.
template <class T>
void copy_sequences(const Tensor<T>& from, Tensor<T>& to, std::span<const std::int64_t> parents,
                    std::int64_t length) {
  if (!from.present()) return;
  parallel_items(from.shape()[0] * std::ssize(parents), [&](std::int64_t item) {
    const std::int64_t layer = item / std::ssize(parents), child = item % std::ssize(parents);
    const std::int64_t parent = parents[static_cast<std::size_t>(child)];
    if (&from == &to && parent == child) return;
    kernels::copy(from.view()[layer][parent].slice(1, 0, length),
                  to.view()[layer][child].slice(1, 0, length));
  });
}

// The same positions of the same sequences, with room for more.
template <class T>
void copy_heads(const Tensor<T>& from, Tensor<T>& to, std::int64_t length) {
  if (!from.present()) return;
  kernels::copy(from.view().slice(3, 0, length), to.view().slice(3, 0, length));
}

// Whether sequences can be copied in place: none that is copied is overwritten.
bool can_stay_in_place(std::span<const std::int64_t> parents) {
  return std::ranges::all_of(parents, [&](std::int64_t parent) {
    return parent >= std::ssize(parents) || parents[static_cast<std::size_t>(parent)] == parent;
  });
}

}  // namespace

void KeyValueCache::copy_parents(std::span<const std::int64_t> parents, const Memory& from,
                                 Memory& to) const {
  copy_sequences(from.numbers, to.numbers, parents, length_);
  copy_sequences(from.quantised, to.quantised, parents, length_);
  copy_sequences(from.scales, to.scales, parents, length_);
}

void KeyValueCache::select(std::span<const std::int64_t> parents) {
  check(std::ssize(parents) <= shape_[1], "as many sequences as there is room for");
  for (const std::int64_t parent : parents) {
    check(parent >= 0 && parent < batch_, "parents among the sequences");
  }
  batch_ = std::ssize(parents);
  if (can_stay_in_place(parents)) {
    for (Memory* memory : {&keys_, &values_}) copy_parents(parents, *memory, *memory);
    return;
  }
  if (!spare_.numbers.present() && !spare_.quantised.present()) spare_ = make_memory();
  memory_number_ = next_memory_number();
  for (Memory* memory : {&keys_, &values_}) {
    copy_parents(parents, *memory, spare_);
    std::swap(*memory, spare_);
  }
}

void KeyValueCache::reserve(std::int64_t capacity) {
  if (capacity <= shape_[3]) return;
  shape_ = {shape_[0], shape_[1], shape_[2], capacity, shape_[4]};
  spare_ = {};
  memory_number_ = next_memory_number();
  for (Memory* memory : {&keys_, &values_}) {
    Memory larger = make_memory();
    copy_heads(memory->numbers, larger.numbers, length_);
    copy_heads(memory->quantised, larger.quantised, length_);
    copy_heads(memory->scales, larger.scales, length_);
    *memory = std::move(larger);
  }
}

void KeyValueCache::store(std::int64_t layer, View<const float> rows, Memory& memory) const {
  const std::int64_t count = rows.extent(1);
  const auto in_use = [&](auto view) { return view[layer].slice(0, 0, batch_); };
  if (type_ == CacheType::f32) {
    return kernels::store_rows(rows,
                               positions_first(in_use(memory.numbers.view()), length_, count));
  }
  kernels::MutableQuantisedRows to{
      .type = type_, .rows = positions_first(in_use(memory.quantised.view()), length_, count)};
  if (type_ == CacheType::int8) {
    to.scales = positions_first(in_use(memory.scales.view()), length_, count);
  }
  kernels::quantise_rows(rows, to);
}

View<const float> KeyValueCache::numbers(const Memory& memory, std::int64_t layer,
                                         std::int64_t positions) const {
  check(type_ == CacheType::f32, "an f32 cache");
  return positions_first(memory.numbers.view()[layer].slice(0, 0, batch_), 0, positions);
}

kernels::ConstQuantisedRows KeyValueCache::quantised(const Memory& memory, std::int64_t layer,
                                                     std::int64_t positions) const {
  check(type_ != CacheType::f32, "a quantised cache");
  kernels::ConstQuantisedRows rows{
      .type = type_,
      .rows = positions_first(memory.quantised.view()[layer].slice(0, 0, batch_), 0, positions)};
  if (type_ == CacheType::int8) {
    rows.scales = positions_first(memory.scales.view()[layer].slice(0, 0, batch_), 0, positions);
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
