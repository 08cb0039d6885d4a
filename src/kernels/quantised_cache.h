// Keys and values in a shorter format than they were computed in: a token of cached decoding reads
// all of them, so that the speed of a long context is the bytes of the cache over the bandwidth of
// memory.
//   bf16   D numbers of two bytes
//   int8   D integers of −127 to 127 and, apart from them, one scale in f32 for a position of a
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

// Bytes of one position of one head, without its scale.
std::int64_t cache_row_bytes(CacheType type, std::int64_t head_size);
// With it.
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

// Rounds rows (B, S, H, D) to nearest. Of int8, a row that is not finite becomes NaN as a whole,
// and one whose magnitudes are below 1e-36 zero.
void quantise_rows(View<const float> from, const MutableQuantisedRows& to);
// The numbers that the rows stand for.
void dequantise_rows(const ConstQuantisedRows& from, View<float> to);

// As AttentionInput, against a memory in a short format.
struct QuantisedCacheAttention {
  View<const float> query;   // (B, T, H, D)
  ConstQuantisedRows key;    // (B, S, H, D)
  ConstQuantisedRows value;  // (B, S, H, D)
  Mask mask = Mask::causal;
  float scale = 1.0F;
};

// What attention_forward gives for the restored memory, to rounding. A few queries read the memory
// as it is; for many, each thread restores one head of one sequence at a time.
void attention_forward(const QuantisedCacheAttention& input, View<float> out,
                       View<float> log_sum_exp);

}  // namespace heed::kernels
