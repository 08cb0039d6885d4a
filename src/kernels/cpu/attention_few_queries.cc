// Attention of a few queries, which splits a long memory into parts and merges their results; and
// attention of many queries against a quantised cache.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/threads.h"
#include "kernels/cpu/attention_blocks.h"
#include "kernels/cpu/attention_row.h"
#include "kernels/cpu/scratch.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// Memory rows of a part: long enough to make the overhead of a work item negligible.
constexpr std::int64_t least_part = 512;
constexpr std::int64_t most_parts = 16;

struct RowOutput {
  View<float> out;          // (B, T, H, D)
  View<float> log_sum_exp;  // (B, H, T)
};

// Merges the partial results of a row: each D numbers, a maximum and a sum, `width` apart.
void merge_parts(const float* first, std::int64_t parts, std::int64_t width, std::int64_t size,
                 float kept, float* to, float* log_sum_exp) {
  float maximum = first[size];
  for (std::int64_t p = 1; p < parts; ++p) maximum = std::max(maximum, first[p * width + size]);
  float sum = 0.0F;
  for (std::int64_t p = 0; p < parts; ++p) {
    sum += first[p * width + size + 1] * std::exp2(first[p * width + size] - maximum);
  }
  std::fill_n(to, size, 0.0F);
  for (std::int64_t p = 0; p < parts; ++p) {
    const float* const mine = first + p * width;
    const float factor = std::exp2(mine[size] - maximum) / (sum * kept);
    for (std::int64_t k = 0; k < size; ++k) to[k] += factor * mine[k];
  }
  *log_sum_exp = maximum * std::numbers::ln2_v<float> + std::log(sum);
}

// Item (b, h, t, part): partial results in `parts` rows of D + 2 floats a query, merged in order.
// `head_at(b, h)` returns a head with its queries, `memory_at(b, h)` its keys and values.
template <class HeadAt, class MemoryAt>
void attend_rows(const Shape& query, std::int64_t memory, HeadAt&& head_at, MemoryAt&& memory_at,
                 const RowOutput& output) {
  const std::int64_t queries = query[1], heads = query[2], size = query[3];
  const std::int64_t rows = query[0] * heads * queries;
  // depends on the memory's length only, so that results do not depend on the batch
  const std::int64_t parts = std::clamp<std::int64_t>(memory / least_part, 1, most_parts);
  const std::int64_t width = (size + 2 + 15) / 16 * 16;
  float* const partial = scratch(Scratch::shared, static_cast<std::size_t>(rows * parts * width));
  parallel_items(rows * parts, [&](std::int64_t item) {
    const std::int64_t row = item / parts, part = item % parts;
    const std::int64_t b = row / (heads * queries), h = row / queries % heads, t = row % queries;
    const Head head = head_at(b, h);
    const std::int64_t end = visible_end(head, t + 1);
    float* const mine = partial + item * width;
    const PartialSoftmax softmax =
        attend_row(head, memory_at(b, h), t, {end * part / parts, end * (part + 1) / parts}, mine);
    mine[size] = softmax.maximum;
    mine[size + 1] = softmax.sum;
  });
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t b = row / (heads * queries), h = row / queries % heads, t = row % queries;
    merge_parts(partial + row * parts * width, parts, width, size,
                1.0F - head_at(b, h).dropout.rate, &output.out(b, t, h, 0),
                &output.log_sum_exp(b, h, t));
  }
}

MemoryRows float_rows(const View<const float>& view, std::int64_t b, std::int64_t h) {
  const Rows<const float> rows = head_rows(view, b, h);
  return {.type = CacheType::f32,
          .data = reinterpret_cast<const std::byte*>(rows.data),
          .stride = rows.stride * static_cast<std::int64_t>(sizeof(float))};
}

MemoryRows quantised_rows(const ConstQuantisedRows& view, std::int64_t b, std::int64_t h) {
  const Rows<const std::byte> rows = head_rows(view.rows, b, h);
  MemoryRows result{.type = view.type, .data = rows.data, .stride = rows.stride};
  if (view.type == CacheType::int8) {
    result.scales = &view.scales(b, 0, h);
    result.scale_stride = view.scales.stride(1);
  }
  return result;
}

// Without keys and values of its own.
Head head_of(const QuantisedCacheAttention& input, std::int64_t batch, std::int64_t head) {
  const std::int64_t queries = input.query.extent(1), memory = input.key.rows.extent(1);
  return {.query = head_rows(input.query, batch, head),
          .queries = queries,
          .memory = memory,
          .head_size = input.query.extent(3),
          .visible = input.mask == Mask::causal ? memory - queries : memory,
          .scale = input.scale};
}

// All rows of a head, dequantised to dense f32.
Rows<const float> restore_head(const MemoryRows& rows, const Head& head, float* to) {
  for (std::int64_t s = 0; s < head.memory; ++s) {
    restore_row(rows.type, rows.data + s * rows.stride, rows.scales + s * rows.scale_stride,
                head.head_size, to + s * head.head_size);
  }
  return {to, head.head_size};
}

void attend_many_queries(const QuantisedCacheAttention& input, const RowOutput& output) {
  const std::int64_t batch = input.query.extent(0), queries = input.query.extent(1);
  const std::int64_t heads = input.query.extent(2);
  parallel_items(batch * heads, [&](std::int64_t item) {
    const std::int64_t b = item / heads, h = item % heads;
    Head head = head_of(input, b, h);
    const std::int64_t numbers = head.memory * head.head_size;
    float* const restored = scratch(Scratch::memory, static_cast<std::size_t>(2 * numbers));
    head.key = restore_head(quantised_rows(input.key, b, h), head, restored);
    head.value = restore_head(quantised_rows(input.value, b, h), head, restored + numbers);
    for (std::int64_t begin = 0; begin < queries; begin += query_block) {
      attend_block(head, begin, std::min(begin + query_block, queries), head_rows(output.out, b, h),
                   &output.log_sum_exp(b, h, 0));
    }
  });
}

// Checks rows (B, S, H, bytes) of the cache.
void check_rows(const ConstQuantisedRows& rows, const Shape& query, std::int64_t memory,
                std::string_view name) {
  require(rows.type != CacheType::f32, ErrorCode::invalid_argument,
          "{} of type f32 is not quantised: expected bf16 or int8", name);
  checks::heads(rows.rows, {query[0], memory, query[2], cache_row_bytes(rows.type, query[3])},
                name);
  if (rows.type == CacheType::int8) {
    require_shape(rows.scales, {query[0], memory, query[2]}, name);
  }
}

void check_input(const QuantisedCacheAttention& input, const RowOutput& output) {
  checks::rank(input.query, 4, "query");
  checks::rank(input.key.rows, 4, "key");
  const Shape& query = input.query.shape();
  const std::int64_t memory = input.key.rows.extent(1);
  checks::heads(input.query, query, "query");
  check_rows(input.key, query, memory, "key");
  check_rows(input.value, query, memory, "value");
  require(input.key.type == input.value.type, ErrorCode::invalid_argument,
          "keys are {} and values {}: expected the same type", cache_type_name(input.key.type),
          cache_type_name(input.value.type));
  require(query[3] > 0 && memory > 0, ErrorCode::invalid_argument,
          "query has shape {} and the memory {} rows: attention needs a memory and a head size",
          query, memory);
  require(input.mask == Mask::full || query[1] <= memory, ErrorCode::invalid_argument,
          "causal attention of {} queries needs a memory at least as long, not {}", query[1],
          memory);
  checks::heads(output.out, query, "out");
  checks::contiguous(output.log_sum_exp, Shape{query[0], query[2], query[1]}, "log_sum_exp");
}

}  // namespace

void attend_few_queries(const AttentionInput<float>& input, View<float> out,
                        View<float> log_sum_exp) {
  attend_rows(
      input.query.shape(), input.key.extent(1),
      [&](std::int64_t b, std::int64_t h) { return head_of(input, b, h); },
      [&](std::int64_t b, std::int64_t h) {
        return HeadMemory{float_rows(input.key, b, h), float_rows(input.value, b, h)};
      },
      {out, log_sum_exp});
}

void attention_forward(const QuantisedCacheAttention& input, View<float> out,
                       View<float> log_sum_exp) {
  const RowOutput output{out, log_sum_exp};
  check_input(input, output);
  if (input.query.extent(1) > few_queries) return attend_many_queries(input, output);
  attend_rows(
      input.query.shape(), input.key.rows.extent(1),
      [&](std::int64_t b, std::int64_t h) { return head_of(input, b, h); },
      [&](std::int64_t b, std::int64_t h) {
        return HeadMemory{quantised_rows(input.key, b, h), quantised_rows(input.value, b, h)};
      },
      output);
}

}  // namespace heed::kernels
