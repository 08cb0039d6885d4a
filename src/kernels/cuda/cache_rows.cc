// Stores keys and values on a device, quantised or not, and restores them.
#include "kernels/backends.h"
#include "kernels/cache_checks.h"
#include "kernels/cuda/attention_operands.h"

namespace heed::kernels {
namespace {

template <class Number>
HeedCacheRows plain_numbers(const View<Number>& numbers) {
  HeedCacheRows plain{};
  plain.numbers = cuda::plain_heads(numbers);
  plain.type = HEED_ROWS_F32;
  plain.batch = static_cast<int>(numbers.extent(0));
  plain.positions = static_cast<int>(numbers.extent(1));
  plain.heads = static_cast<int>(numbers.extent(2));
  plain.head_size = static_cast<int>(numbers.extent(3));
  return plain;
}

template <class Number, class Byte, class Scale>
HeedCacheRows plain_rows(const View<Number>& numbers, const QuantisedRows<Byte, Scale>& rows) {
  HeedCacheRows plain = plain_numbers(numbers);
  plain.rows = cuda::plain_heads(rows.rows, cache_row_bytes(rows.type, 1));
  if (rows.type == CacheType::int8) plain.scales = cuda::plain_heads(rows.scales);
  plain.type = rows.type == CacheType::int8 ? HEED_ROWS_INT8 : HEED_ROWS_BF16;
  return plain;
}

// Of a repetition, at later positions.
void launch_storing(HeedCacheRows plain) {
  static const cuda::Function<HeedCacheRows> launch("store_rows");
  plain.repetition = cuda::repetition();
  launch(plain);
}

}  // namespace

void cuda::store_rows(View<const float> from, View<float> to) {
  checks::heads(from, from.shape(), "keys or values");
  checks::heads(to, from.shape(), "rows");
  if (from.size() == 0) return;
  HeedCacheRows plain = plain_numbers(from);
  plain.rows = plain_heads(to);
  launch_storing(plain);
}

void cuda::quantise_rows(View<const float> from, const MutableQuantisedRows& to) {
  checks::heads(from, from.shape(), "keys or values");
  checks::cache_rows(to, from.shape(), "rows");
  if (from.size() > 0) launch_storing(plain_rows(from, to));
}

void cuda::dequantise_rows(const ConstQuantisedRows& from, View<float> to) {
  checks::heads(to, to.shape(), "restored rows");
  checks::cache_rows(from, to.shape(), "rows");
  static const Function<HeedCacheRows> launch("dequantise_rows");
  if (to.size() > 0) launch(plain_rows(to, from));
}

}  // namespace heed::kernels
