// One head of one batch element, as the tile kernels see it.
#pragma once

#include <algorithm>
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

// The window of a head without one.
inline constexpr std::int64_t unlimited = std::int64_t{1} << 60;

// What is added to the scores of a head, by the distance s − (S − T + t) of a key from a query.
struct HeadBias {
  const float* values = nullptr;  // of distances [first, end); null: none
  std::int64_t first = 0;
  std::int64_t end = 0;

  bool present() const { return values != nullptr; }
  float at(std::int64_t distance) const {  // masked pairs may be outside
    return distance >= first && distance < end ? values[distance - first] : 0.0F;
  }
};

struct Head {
  Rows<const float> query;  // T rows
  Rows<const float> key;    // S rows
  Rows<const float> value;  // S rows
  std::int64_t queries = 0;
  std::int64_t memory = 0;
  std::int64_t head_size = 0;
  // Query t sees memory [visible + t − window + 1, visible + t], cut off at 0 and S: `visible` is
  // S − T + query_offset when causal, S when full.
  std::int64_t visible = 0;
  std::int64_t window = unlimited;
  float scale = 1.0F;
  float soft_cap = 0.0F;  // 0: none
  HeadBias bias{};
  Dropout dropout{};
  std::int64_t first_row = 0;  // dropout's row of query 0
  Precision precision = Precision::f32;
  bool padded = false;  // whether key and value are copies: rounded, zero up to a whole vector

  // The distance of a key from a query.
  std::int64_t distance(std::int64_t t, std::int64_t s) const { return s - (memory - queries + t); }
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

// The length of the pass that the queries are part of, which selects the arithmetic.
template <class Input>
std::int64_t positions_of(const Input& input) {
  return input.positions == 0 ? input.query.extent(1) : input.positions;
}

template <class Input>
std::int64_t window_of(const Input& input) {
  return input.window == 0 ? unlimited : std::min(input.window, unlimited);
}

inline HeadBias bias_of(const PositionBias<float>& bias, std::int64_t head) {
  if (!bias.present()) return {};
  return {&bias.values(head, 0), bias.first, bias.first + bias.values.extent(1)};
}

inline Precision precision_of(const AttentionInput<float>& input) {
  return positions_of(input) <= few_queries ? Precision::f32 : input.precision;
}

inline Head head_of(const AttentionInput<float>& input, std::int64_t batch, std::int64_t head) {
  const std::int64_t queries = input.query.extent(1), memory = input.key.extent(1);
  const std::int64_t heads = input.query.extent(2), positions = positions_of(input);
  const std::int64_t key_head = head / (heads / input.key.extent(2));
  const bool causal = input.mask == Mask::causal;
  return {.query = head_rows(input.query, batch, head),
          .key = head_rows(input.key, batch, key_head),
          .value = head_rows(input.value, batch, key_head),
          .queries = queries,
          .memory = memory,
          .head_size = input.query.extent(3),
          .visible = causal ? memory - queries + input.query_offset : memory,
          .window = window_of(input),
          .scale = input.scale,
          .soft_cap = input.soft_cap,
          .bias = bias_of(input.position_bias, head),
          .dropout = input.dropout,
          .first_row = (batch * heads + head) * positions + (positions - queries),
          .precision = precision_of(input)};
}

// What queries are multiplied by before their products with keys: the result is scores in units of
// 1/unit or, with a soft cap, the argument of its tanh.
inline float query_factor(const Head& head, float unit) {
  return head.soft_cap > 0.0F ? head.scale / head.soft_cap : head.scale * unit;
}

// The number of memory rows visible to queries before `query_end`.
inline std::int64_t visible_end(const Head& head, std::int64_t query_end) {
  return head.memory < head.visible + query_end ? head.memory : head.visible + query_end;
}

// The first memory row visible to a query at or after `query_begin`.
inline std::int64_t visible_begin(const Head& head, std::int64_t query_begin) {
  return std::max<std::int64_t>(head.visible + query_begin - head.window + 1, 0);
}

// The start of the tile of keys that holds it: tiles start at multiples of key_block, so that a row
// is summed in the same order in every pass.
inline std::int64_t first_tile(const Head& head, std::int64_t query_begin) {
  return visible_begin(head, query_begin) / key_block * key_block;
}

}  // namespace heed::kernels
