// Quantised caches of keys and values. Decoding a token reads the whole cache, so at long contexts
// its time is the size of the cache divided by the memory bandwidth.
//   bf16   D numbers of two bytes
//   int8   D integers of −127 to 127 and, stored separately, one f32 scale for each position of
//   each
//          head: number = scale · integer, scale = largest magnitude / 127
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/operands.h"

namespace heed::kernels {

enum class CacheType : std::uint8_t { f32, bf16, int8 };

std::string_view cache_type_name(CacheType type);  // "f32", "bf16", "int8"
// Throws Error{invalid_argument} for another name.
CacheType parse_cache_type(std::string_view name);

// Bytes of one position of one head, without the scale.
std::int64_t cache_row_bytes(CacheType type, std::int64_t head_size);
// The same with the scale.
std::int64_t cache_row_bytes_with_scale(CacheType type, std::int64_t head_size);

// Keys or values (B, S, H, D) as bf16 or int8. Rows are dense; the rest may be strided.
template <class Byte, class Number>
struct QuantisedRows {
  CacheType type = CacheType::bf16;
  View<Byte> rows;      // (B, S, H, cache_row_bytes)
  View<Number> scales;  // (B, S, H), of int8
};
using ConstQuantisedRows = QuantisedRows<const std::byte, const float>;
using MutableQuantisedRows = QuantisedRows<std::byte, float>;

// Stores rows (B, S, H, D) of an f32 cache: to = from.
void store_rows(View<const float> from, View<float> to);
// Rounds rows (B, S, H, D) to nearest. In int8, all of a row with a non-finite number becomes NaN,
// and a row with magnitudes below 1e-36 becomes zero.
void quantise_rows(View<const float> from, const MutableQuantisedRows& to);
// The dequantised rows (B, S, H, D).
void dequantise_rows(const ConstQuantisedRows& from, View<float> to);

// As AttentionInput, with quantised keys and values.
struct QuantisedCacheAttention {
  View<const float> query;   // (B, T, H, D)
  ConstQuantisedRows key;    // (B, S, G, D)
  ConstQuantisedRows value;  // (B, S, G, D)
  Mask mask = Mask::causal;
  float scale = 1.0F;
  std::int64_t window = 0;
  float soft_cap = 0.0F;
  std::int64_t positions = 0;
  PositionBias<float> position_bias{};
};

// Equal to attention_forward() on dequantised keys and values, up to rounding. A few queries read
// the quantised rows directly; for many, each thread dequantises one head of one sequence at a
// time.
void attention_forward(const QuantisedCacheAttention& input, View<float> out,
                       View<float> log_sum_exp);

}  // namespace heed::kernels
