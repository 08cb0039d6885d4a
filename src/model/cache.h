// The keys and values of the positions a model has already read, so that the next one costs a
// single row.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "tensor/tensor.h"

namespace heed {

class KeyValueCache {
 public:
  // Room for `capacity` positions of `batch` sequences in every layer.
  KeyValueCache(const GptConfig& config, std::int64_t batch, std::int64_t capacity);

  std::int64_t batch() const { return keys_.shape()[1]; }
  std::int64_t capacity() const { return keys_.shape()[3]; }
  std::int64_t length() const { return length_; }  // positions held

  // Forgets the positions from `length` on.
  void truncate(std::int64_t length);

  // Makes `positions` new ones part of the memory once every layer has stored them.
  void advance(std::int64_t positions);

  // Writes new keys and values (B, T, H, D) of `layer` behind those held.
  void store(std::int64_t layer, View<const float> key, View<const float> value);

  // The first `positions` keys or values of `layer`, (B, positions, H, D).
  View<const float> keys(std::int64_t layer, std::int64_t positions) const;
  View<const float> values(std::int64_t layer, std::int64_t positions) const;

 private:
  // (L, B, H, capacity, D): one head's keys lie together, for they are read together.
  Tensor<float> keys_;
  Tensor<float> values_;
  std::int64_t length_ = 0;
};

}  // namespace heed
