// The preconditions of quantised_cache.h, for every implementation.
#pragma once

#include "kernels/operand_checks.h"
#include "kernels/quantised_cache.h"

namespace heed::kernels::checks {

// Rows of a cache for numbers of `shape` (B, S, H, D).
template <class Byte, class Number>
void cache_rows(const QuantisedRows<Byte, Number>& rows, const Shape& shape,
                std::string_view name) {
  require(rows.type != CacheType::f32, ErrorCode::invalid_argument,
          "{} of type f32 is not quantised: expected bf16 or int8", name);
  heads(rows.rows, {shape[0], shape[1], shape[2], cache_row_bytes(rows.type, shape[3])}, name);
  if (rows.type == CacheType::int8) {
    require_shape(rows.scales, {shape[0], shape[1], shape[2]}, name);
  }
}

inline void cache_attention(const QuantisedCacheAttention& input, const View<float>& out,
                            const View<float>& log_sum_exp) {
  rank(input.query, 4, "query");
  rank(input.key.rows, 4, "key");
  const Shape& query = input.query.shape();
  const Shape memory{query[0], input.key.rows.extent(1), input.key.rows.extent(2), query[3]};
  heads(input.query, query, "query");
  cache_rows(input.key, memory, "key");
  cache_rows(input.value, memory, "value");
  require(input.key.type == input.value.type, ErrorCode::invalid_argument,
          "keys are {} and values {}: expected the same type", cache_type_name(input.key.type),
          cache_type_name(input.value.type));
  attention_options(input, query, memory[1], memory[2]);
  heads(out, query, "out");
  contiguous(log_sum_exp, Shape{query[0], query[2], query[1]}, "log_sum_exp");
}

}  // namespace heed::kernels::checks
