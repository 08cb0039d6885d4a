// The key-value cache: keys and values of the positions computed so far, so that the next position
// costs a single row.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/quantised_cache.h"
#include "model/architecture.h"
#include "tensor/tensor.h"

namespace heed {

using kernels::CacheType;

// Bytes of the cache of one sequence of `positions` positions.
std::int64_t cache_bytes(const StackSpecification& config, CacheType type, std::int64_t positions);

class KeyValueCache {
 public:
  // Room for `capacity` positions of `batch` sequences in every layer. Types other than f32 are
  // quantised as they are stored, and attention reads the quantised values from the first pass on,
  // so that results do not depend on how a sequence was divided into passes.
  KeyValueCache(const StackSpecification& config, std::int64_t batch, std::int64_t capacity,
                CacheType type = CacheType::f32, Device device = {});
  // Of any attention of `layers` layers.
  KeyValueCache(const AttentionSpecification& attention, std::int64_t layers, std::int64_t batch,
                std::int64_t capacity, CacheType type, Device device = {});

  CacheType type() const { return type_; }
  std::int64_t batch() const { return batch_; }
  std::int64_t capacity() const { return shape_[3]; }
  std::int64_t length() const { return length_; }  // positions held
  std::int64_t bytes() const { return keys_.bytes() + values_.bytes(); }
  // Of all that caches of this process ever had: another number, another memory.
  std::uint64_t memory_number() const { return memory_number_; }

  // Removes the positions from `length` on.
  void truncate(std::int64_t length);

  // Makes sequence r a copy of what was sequence parents[r], for r < parents.size(): as many
  // sequences as there are parents remain, at most those that there is room for. Where each parent
  // of another either stays where it is (parents[p] == p) or is beyond the last child, only the
  // others are copied.
  void select(std::span<const std::int64_t> parents);

  // Makes room for `capacity` positions, if there are fewer.
  void reserve(std::int64_t capacity);

  // Counts `positions` new positions as held, once every layer has stored them.
  void advance(std::int64_t positions);

  // Appends keys and values (B, T, G, D) of `layer`. Throws Error{invalid_argument} for another
  // shape, a layer that the cache does not have, and more positions than its capacity.
  void store(std::int64_t layer, View<const float> key, View<const float> value);

  // The first `positions` keys or values of `layer`, (B, positions, G, D), of an f32 cache.
  View<const float> keys(std::int64_t layer, std::int64_t positions) const;
  View<const float> values(std::int64_t layer, std::int64_t positions) const;

  // The same of a quantised cache.
  kernels::ConstQuantisedRows quantised_keys(std::int64_t layer, std::int64_t positions) const;
  kernels::ConstQuantisedRows quantised_values(std::int64_t layer, std::int64_t positions) const;

 private:
  // (L, B, G, capacity, …): one head's keys are read together, so they are adjacent.
  struct Memory {
    Tensor<float> numbers;        // (…, D): f32
    Tensor<std::byte> quantised;  // (…, bytes of a row): other types
    Tensor<float> scales;         // (…): int8
    std::int64_t bytes() const { return 4 * numbers.size() + quantised.size() + 4 * scales.size(); }
  };
  Memory make_memory() const;
  void store(std::int64_t layer, View<const float> rows, Memory& memory) const;
  void copy_parents(std::span<const std::int64_t> parents, const Memory& from, Memory& to) const;
  View<const float> numbers(const Memory& memory, std::int64_t layer, std::int64_t positions) const;
  kernels::ConstQuantisedRows quantised(const Memory& memory, std::int64_t layer,
                                        std::int64_t positions) const;

  CacheType type_;
  Device device_;
  std::int64_t batch_;  // sequences in use, the first ones
  Shape shape_;         // (L, B, G, capacity, D), with room for B sequences
  Memory keys_;
  Memory values_;
  Memory spare_;  // of select(), allocated when first needed
  std::uint64_t memory_number_;
  std::int64_t length_ = 0;
};

}  // namespace heed
