// Quantises and dequantises keys and values.
#include "kernels/quantised_cache.h"
#include "kernels/backends.h"
#include "kernels/cache_checks.h"

#include <algorithm>
#include <iterator>

#include "kernels/cpu/attention_row.h"

namespace heed::kernels {
namespace {

constexpr std::string_view type_names[] = {"f32", "bf16", "int8"};

// Calls body(b, s, h) for every row of `rows`, which must hold rows of `shape` (B, S, H, D).
template <class Byte, class Number, class Body>
void for_every_row(const QuantisedRows<Byte, Number>& rows, const Shape& shape, Body&& body) {
  checks::cache_rows(rows, shape, "rows");
  const bool scaled = rows.type == CacheType::int8;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t s = 0; s < shape[1]; ++s) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        body(b, s, h, scaled ? &rows.scales(b, s, h) : nullptr);
      }
    }
  }
}

}  // namespace

std::string_view cache_type_name(CacheType type) {
  return type_names[static_cast<std::size_t>(type)];
}

CacheType parse_cache_type(std::string_view name) {
  const auto* const found = std::find(std::begin(type_names), std::end(type_names), name);
  require(found != std::end(type_names), ErrorCode::invalid_argument,
          "there is no cache type '{}': expected f32, bf16 or int8", name);
  return static_cast<CacheType>(found - std::begin(type_names));
}

std::int64_t cache_row_bytes(CacheType type, std::int64_t head_size) {
  constexpr std::int64_t bytes[] = {4, 2, 1};
  return head_size * bytes[static_cast<std::size_t>(type)];
}

std::int64_t cache_row_bytes_with_scale(CacheType type, std::int64_t head_size) {
  const auto scale = static_cast<std::int64_t>(sizeof(float));
  return cache_row_bytes(type, head_size) + (type == CacheType::int8 ? scale : 0);
}

void cpu::store_rows(View<const float> from, View<float> to) { cpu::copy(from, to); }

void cpu::quantise_rows(View<const float> from, const MutableQuantisedRows& to) {
  checks::heads(from, from.shape(), "keys or values");
  for_every_row(
      to, from.shape(), [&](std::int64_t b, std::int64_t s, std::int64_t h, float* scale) {
        quantise_row(to.type, &from(b, s, h, 0), from.extent(3), &to.rows(b, s, h, 0), scale);
      });
}

void cpu::dequantise_rows(const ConstQuantisedRows& from, View<float> to) {
  checks::heads(to, to.shape(), "restored rows");
  for_every_row(
      from, to.shape(), [&](std::int64_t b, std::int64_t s, std::int64_t h, const float* scale) {
        restore_row(from.type, &from.rows(b, s, h, 0), scale, to.extent(3), &to(b, s, h, 0));
      });
}

}  // namespace heed::kernels
