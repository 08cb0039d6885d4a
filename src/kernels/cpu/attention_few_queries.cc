// Attention of a few queries, which splits a long memory into parts and merges their results; and
// attention of many queries against a quantised cache.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/cache_checks.h"
#include "kernels/cpu/attention_blocks.h"
#include "kernels/cpu/attention_row.h"
#include "kernels/cpu/scratch.h"

namespace heed::kernels {
namespace {

// Memory rows of a part: long enough to make the overhead of a work item negligible.
constexpr std::int64_t min_part = 512;
constexpr std::int64_t max_parts = 16;

// Multiply-adds of a thread's shortest turn, some 2 µs: twice what it costs to give it out.
constexpr std::int64_t min_work = 16384;

struct RowOutput {
  View<float> out;          // (B, T, H, D)
  View<float> log_sum_exp;  // (B, H, T)
};

// Merges the partial results of a row: each D numbers, a maximum and a sum, `width` apart.
void merge_parts(const float* first, std::int64_t parts, std::int64_t width, std::int64_t size,
                 float kept, float* to, float* log_sum_exp) {
  float maximum = first[size];
  for (std::int64_t p = 1; p < parts; ++p) maximum = std::max(maximum, first[p * width + size]);
  if (std::isinf(maximum) && maximum < 0.0F) {  // the query sees nothing of the memory
    std::fill_n(to, size, 0.0F);
    *log_sum_exp = maximum;
    return;
  }
  if (parts == 1) {
    const float factor = 1.0F / (first[size + 1] * kept);
    for (std::int64_t k = 0; k < size; ++k) to[k] = factor * first[k];
    *log_sum_exp = maximum * std::numbers::ln2_v<float> + std::log(first[size + 1]);
    return;
  }
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

struct QueryShape {
  std::int64_t batch, queries, heads, key_heads, size;
  std::int64_t query_step;  // floats from head to head
  std::int64_t positions;
  std::int64_t bias_step;  // floats from head to head
};

template <class Input>
QueryShape query_shape(const Input& input, std::int64_t key_heads) {
  const Shape& query = input.query.shape();
  return {.batch = query[0],
          .queries = query[1],
          .heads = query[2],
          .key_heads = key_heads,
          .size = query[3],
          .query_step = input.query.stride(2),
          .positions = positions_of(input),
          .bias_step = input.position_bias.present() ? input.position_bias.values.stride(0) : 0};
}

// The memory visible to a query, divided into parts.
MemoryRange part_of(const Head& head, std::int64_t query, std::int64_t part, std::int64_t parts) {
  const std::int64_t begin = visible_begin(head, query), end = visible_end(head, query + 1);
  return {begin + (end - begin) * part / parts, begin + (end - begin) * (part + 1) / parts};
}

// Partial results in `parts` rows of D + 2 floats a query, merged in order. `head_at(b, h)` returns
// a head with its queries, `memory_at(b, g)` a key head's keys and values.
template <class HeadAt, class MemoryAt>
void attend_each_query(const QueryShape& shape, HeadAt&& head_at, MemoryAt&& memory_at,
                       const RowOutput& output) {
  const std::int64_t queries = shape.queries, heads = shape.heads, size = shape.size;
  const std::int64_t rows = shape.batch * heads * queries;
  if (rows == 0) return;
  // depends on the memory and the window only, so that results do not depend on the batch
  const Head any = head_at(0, 0);
  const std::int64_t parts =
      std::clamp<std::int64_t>(std::min(any.memory, any.window) / min_part, 1, max_parts);
  const std::int64_t width = (size + 2 + 15) / 16 * 16;
  float* const partial = scratch(Scratch::shared, static_cast<std::size_t>(rows * parts * width));
  // An item is a part of the memory for one query of a key head's query heads or, where there are
  // too few items for the threads, for a share of those heads.
  const std::int64_t group = heads / shape.key_heads;
  const std::int64_t ranges = shape.batch * shape.key_heads * queries * parts;
  const std::int64_t shares =
      std::clamp<std::int64_t>((thread_count() + ranges - 1) / ranges, 1, group);
  const auto merge = [&](std::int64_t row) {
    const std::int64_t b = row / (heads * queries), h = row / queries % heads, t = row % queries;
    merge_parts(partial + row * parts * width, parts, width, size, 1.0F - any.dropout.rate,
                &output.out(b, t, h, 0), &output.log_sum_exp(b, h, t));
  };
  const auto attend = [&](std::int64_t item) {
    const std::int64_t share = item % shares, part = item / shares % parts;
    const std::int64_t t = item / shares / parts % queries;
    const std::int64_t plane = item / shares / parts / queries;
    const std::int64_t b = plane / shape.key_heads, g = plane % shape.key_heads;
    const std::int64_t first = group * share / shares, last = group * (share + 1) / shares;
    const std::int64_t h = g * group + first;
    const Head head = head_at(b, h);
    attend_rows({.head = head,
                 .heads = last - first,
                 .query = t,
                 .query_step = shape.query_step,
                 .row_step = shape.positions,
                 .bias_step = shape.bias_step},
                memory_at(b, g), part_of(head, t, part, parts),
                partial + (((b * heads + h) * queries + t) * parts + part) * width,
                queries * parts * width);
    if (parts > 1) return;
    for (std::int64_t k = h; k < g * group + last; ++k) merge((b * heads + k) * queries + t);
  };
  // Threads take short items, as of the beams of many sentences, some at a time, and a call too
  // short for two threads runs on one.
  const std::int64_t items = ranges * shares;
  const std::int64_t work = std::min(any.memory, any.window) / parts * size * group / shares + 1;
  const std::int64_t together =
      std::max({items / (16 * thread_count()), min_work / work, std::int64_t{1}});
  parallel_items((items + together - 1) / together, [&](std::int64_t some) {
    const std::int64_t end = std::min((some + 1) * together, items);
    for (std::int64_t item = some * together; item < end; ++item) attend(item);
  });
  for (std::int64_t row = 0; parts > 1 && row < rows; ++row) merge(row);
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
          .window = window_of(input),
          .scale = input.scale,
          .soft_cap = input.soft_cap,
          .bias = bias_of(input.position_bias, head)};
}

// The rows of a key head from `first` on, dequantised to dense f32.
Rows<const float> restore_head(const MemoryRows& rows, const Head& head, std::int64_t first,
                               float* to) {
  for (std::int64_t s = first; s < head.memory; ++s) {
    restore_row(rows.type, rows.data + s * rows.stride, rows.scales + s * rows.scale_stride,
                head.head_size, to + s * head.head_size);
  }
  return {to, head.head_size};
}

void attend_many_queries(const QuantisedCacheAttention& input, const RowOutput& output) {
  const std::int64_t batch = input.query.extent(0), queries = input.query.extent(1);
  const std::int64_t heads = input.query.extent(2), key_heads = input.key.rows.extent(2);
  // heads of a group share what is dequantised, unless that leaves threads without work
  const std::int64_t group = heads / key_heads;
  const std::int64_t together = divides_evenly(batch * key_heads) ? group : 1;
  parallel_items(batch * heads / together, [&](std::int64_t item) {
    const std::int64_t b = item * together / heads, first = item * together % heads;
    const Head shared = head_of(input, b, first);
    const std::int64_t g = first / group, numbers = shared.memory * shared.head_size;
    float* const restored = scratch(Scratch::memory, static_cast<std::size_t>(2 * numbers));
    const std::int64_t seen = first_tile(shared, 0);
    const auto key = restore_head(quantised_rows(input.key, b, g), shared, seen, restored);
    const auto value =
        restore_head(quantised_rows(input.value, b, g), shared, seen, restored + numbers);
    for (std::int64_t h = first; h < first + together; ++h) {
      Head head = head_of(input, b, h);
      head.key = key;
      head.value = value;
      for (std::int64_t begin = 0; begin < queries; begin += query_block) {
        attend_block(head, begin, std::min(begin + query_block, queries),
                     head_rows(output.out, b, h), &output.log_sum_exp(b, h, 0));
      }
    }
  });
}

}  // namespace

void attend_few_queries(const AttentionInput<float>& input, View<float> out,
                        View<float> log_sum_exp) {
  attend_each_query(
      query_shape(input, input.key.extent(2)),
      [&](std::int64_t b, std::int64_t h) { return head_of(input, b, h); },
      [&](std::int64_t b, std::int64_t g) {
        return HeadMemory{float_rows(input.key, b, g), float_rows(input.value, b, g)};
      },
      {out, log_sum_exp});
}

void cpu::attention_forward(const QuantisedCacheAttention& input, View<float> out,
                            View<float> log_sum_exp) {
  checks::cache_attention(input, out, log_sum_exp);
  const RowOutput output{out, log_sum_exp};
  if (input.query.size() == 0) return;
  if (positions_of(input) > few_queries) return attend_many_queries(input, output);
  attend_each_query(
      query_shape(input, input.key.rows.extent(2)),
      [&](std::int64_t b, std::int64_t h) { return head_of(input, b, h); },
      [&](std::int64_t b, std::int64_t g) {
        return HeadMemory{quantised_rows(input.key, b, g), quantised_rows(input.value, b, g)};
      },
      output);
}

}  // namespace heed::kernels
