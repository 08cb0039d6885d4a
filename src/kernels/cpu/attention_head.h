// One head of one batch element, as the tile kernels see it.
#pragma once

#include <cstdint>

#include "kernels/operands.h"

namespace heed::kernels {

// Rows of head_size dense elements, `stride` elements apart.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
  T* operator[](std::int64_t row) const { return data + row * stride; }
};

struct Head {
  Rows<const float> query;  // T rows
  Rows<const float> key;    // S rows
  Rows<const float> value;  // S rows
  std::int64_t queries = 0;
  std::int64_t memory = 0;
  std::int64_t head_size = 0;
  // Query t sees memory [0, visible + t], cut off at S: S − T when causal, S when full.
  std::int64_t visible = 0;
  float scale = 1.0F;
  Dropout dropout{};
  std::int64_t first_row = 0;  // dropout's row of query 0
  Precision precision = Precision::f32;
  bool padded = false;  // whether key and value are copies: rounded, zero up to a whole vector
};

// Query rows and memory rows handled at a time: tiles of 64 × 64 (16 KiB) and head sizes of up to
// 128 keep everything a tile touches in a second-level cache of 512 KiB, and the operand that is
// streamed in the first-level cache.
inline constexpr std::int64_t query_block = 64;
inline constexpr std::int64_t key_block = 64;

// From this many blocks of queries on, copying a head's memory to dense rows pays off (measured at
// 4 and 16 blocks).
inline constexpr std::int64_t blocks_worth_packing = 8;

template <class T>
Rows<T> head_rows(const View<T>& view, std::int64_t batch, std::int64_t head) {
  return {view.data() + batch * view.stride(0) + head * view.stride(2), view.stride(1)};
}

// Up to this many queries are processed one by one, and in f32, as in decoding: a block would leave
// most of its lanes empty.
inline constexpr std::int64_t few_queries = 3;

inline Precision precision_of(const AttentionInput<float>& input) {
  return input.query.extent(1) <= few_queries ? Precision::f32 : input.precision;
}

inline Head head_of(const AttentionInput<float>& input, std::int64_t batch, std::int64_t head) {
  const std::int64_t queries = input.query.extent(1), memory = input.key.extent(1);
  return {.query = head_rows(input.query, batch, head),
          .key = head_rows(input.key, batch, head),
          .value = head_rows(input.value, batch, head),
          .queries = queries,
          .memory = memory,
          .head_size = input.query.extent(3),
          .visible = input.mask == Mask::causal ? memory - queries : memory,
          .scale = input.scale,
          .dropout = input.dropout,
          .first_row = (batch * input.query.extent(2) + head) * queries,
          .precision = precision_of(input)};
}

// The number of memory rows visible to queries before `query_end`.
inline std::int64_t visible_end(const Head& head, std::int64_t query_end) {
  return head.memory < head.visible + query_end ? head.memory : head.visible + query_end;
}

}  // namespace heed::kernels
