// The keys and values of the positions a model has already read, so that the next one costs a
// single row.
#pragma once

#include <cstdint>

#include "kernels/quantised_cache.h"
#include "model/config.h"
#include "tensor/tensor.h"

namespace heed {

using kernels::CacheType;

// Bytes of a cache of `positions` positions of one sequence.
std::int64_t cache_bytes(const GptConfig& config, CacheType type, std::int64_t positions);

class KeyValueCache {
 public:
  // Room for `capacity` positions of `batch` sequences in every layer. What is not f32 is rounded
  // as it is stored, and read so from the first pass on: a sequence continues alike however it was
  // read.
  KeyValueCache(const GptConfig& config, std::int64_t batch, std::int64_t capacity,
                CacheType type = CacheType::f32);

  CacheType type() const { return type_; }
  std::int64_t batch() const { return shape_[1]; }
  std::int64_t capacity() const { return shape_[3]; }
  std::int64_t length() const { return length_; }  // positions held
  std::int64_t bytes() const { return keys_.bytes() + values_.bytes(); }

  // Forgets the positions from `length` on.
  void truncate(std::int64_t length);

  // Makes `positions` new ones part of the memory once every layer has stored them.
  void advance(std::int64_t positions);

  // Writes new keys and values (B, T, H, D) of `layer` behind those held.
  void store(std::int64_t layer, View<const float> key, View<const float> value);

  // The first `positions` keys or values of `layer`, (B, positions, H, D), of a cache in f32.
  View<const float> keys(std::int64_t layer, std::int64_t positions) const;
  View<const float> values(std::int64_t layer, std::int64_t positions) const;

  // The same of a cache in a short format.
  kernels::ConstQuantisedRows short_keys(std::int64_t layer, std::int64_t positions) const;
  kernels::ConstQuantisedRows short_values(std::int64_t layer, std::int64_t positions) const;

 private:
  // (L, B, H, capacity, …): one head's keys lie together, for they are read together.
  struct Memory {
    Tensor<float> numbers;      // (…, D), of f32
    Tensor<std::byte> shorter;  // (…, bytes of a row), of the other types
    Tensor<float> scales;       // (…), of int8
    std::int64_t bytes() const { return 4 * numbers.size() + shorter.size() + 4 * scales.size(); }
  };
  Memory make_memory() const;
  void store(std::int64_t layer, View<const float> rows, Memory& memory) const;
  View<const float> numbers(const Memory& memory, std::int64_t layer, std::int64_t positions) const;
  kernels::ConstQuantisedRows shorter(const Memory& memory, std::int64_t layer,
                                      std::int64_t positions) const;

  CacheType type_;
  Shape shape_;  // (L, B, H, capacity, D)
  Memory keys_;
  Memory values_;
  std::int64_t length_ = 0;
};

}  // namespace heed
