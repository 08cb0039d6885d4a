// Work distribution of attention over threads. The result of a work item does not depend on the
// thread that computes it, so any schedule is deterministic.
#include <algorithm>

#include "base/threads.h"
#include "kernels/backends.h"
#include "kernels/cpu/attention_blocks.h"
#include "kernels/cpu/attention_row.h"
#include "kernels/cpu/attention_tiles.h"
#include "kernels/cpu/rounding.h"
#include "kernels/cpu/scratch.h"
#include "kernels/operand_checks.h"

namespace heed::kernels {
namespace {

// Spans of fewer queries cost more in packing the memory than an idle thread does.
constexpr std::int64_t min_span = 128;

// Tiles, in bf16, if the machine has them. They know neither windows nor caps nor biases.
const TileAttention* tiles_for(const AttentionInput<float>& input) {
  if (input.window > 0 || input.soft_cap > 0.0F || input.position_bias.present()) return nullptr;
  return precision_of(input) == Precision::bf16 ? tile_attention() : nullptr;
}

// The most floats of a head's memory that a thread copies to a dense buffer: 16 MiB. A longer
// memory is read in place, so that working memory does not grow with the context.
constexpr std::int64_t max_packed_memory = std::int64_t{1} << 22;

// Floats of the partial query gradients that are summed at the end: 32 MiB.
constexpr std::int64_t max_shared = std::int64_t{1} << 23;

void forward_in_tiles(const TileAttention& tiles, const AttentionInput<float>& input,
                      View<float> out, View<float> log_sum_exp) {
  const std::int64_t batch = input.query.extent(0), queries = input.query.extent(1);
  const std::int64_t heads = input.query.extent(2), planes = batch * heads;
  if (planes == 0) return;
  // long spans reduce packing; several per thread balance the work
  const std::int64_t wanted = divide_up(4 * thread_count(), planes);
  const std::int64_t shortest = round_up(divide_up(queries, wanted), query_group);
  const std::int64_t span =
      std::min(tiles.max_span(input.query.extent(3)), std::max(shortest, min_span));
  const std::int64_t spans = divide_up(queries, span);
  parallel_items(planes * spans, [&](std::int64_t item) {
    // the last spans first: under a causal mask they take longest
    const std::int64_t plane = item % planes, b = plane / heads, h = plane % heads;
    const std::int64_t begin = (spans - 1 - item / planes) * span;
    tiles.attend_span(head_of(input, b, h), begin, std::min(begin + span, queries),
                      head_rows(out, b, h), &log_sum_exp(b, h, 0));
  });
}

}  // namespace

void cpu::attention_forward(const AttentionInput<float>& input, View<float> out,
                            View<float> log_sum_exp) {
  checks::attention_output(input, out, log_sum_exp, "out");
  const std::int64_t batch = input.query.extent(0), queries = input.query.extent(1);
  const std::int64_t heads = input.query.extent(2);
  if (batch * heads == 0) return;
  if (positions_of(input) <= few_queries) return attend_few_queries(input, out, log_sum_exp);
  if (const TileAttention* const tiles = tiles_for(input)) {
    return forward_in_tiles(*tiles, input, out, log_sum_exp);
  }
  const std::int64_t blocks = (queries + query_block - 1) / query_block;
  const auto attend = [&](const Head& head, std::int64_t b, std::int64_t h, std::int64_t block) {
    const std::int64_t begin = block * query_block;
    attend_block(head, begin, std::min(begin + query_block, queries), head_rows(out, b, h),
                 &log_sum_exp(b, h, 0));
  };
  const bool packs = blocks >= blocks_worth_packing && divides_evenly(batch * heads) &&
                     packed_memory_size(head_of(input, 0, 0)) <= max_packed_memory;
  if (packs) {
    // heads of a group share the copy, unless that leaves threads without work
    const std::int64_t key_heads = input.key.extent(2), group = heads / key_heads;
    const std::int64_t together = divides_evenly(batch * key_heads) ? group : 1;
    parallel_items(batch * heads / together, [&](std::int64_t item) {
      const std::int64_t b = item * together / heads, first = item * together % heads;
      const Head shared = head_of(input, b, first);
      float* const buffer =
          scratch(Scratch::memory, static_cast<std::size_t>(packed_memory_size(shared)));
      const Head packed = pack_memory(shared, buffer);
      for (std::int64_t h = first; h < first + together; ++h) {
        Head head = head_of(input, b, h);
        head.key = packed.key;
        head.value = packed.value;
        head.padded = packed.padded;
        for (std::int64_t block = 0; block < blocks; ++block) attend(head, b, h, block);
      }
    });
    return;
  }
  parallel_items(batch * heads * blocks, [&](std::int64_t item) {
    const std::int64_t b = item / (heads * blocks), h = item / blocks % heads;
    // the last block first: under a causal mask it is the longest
    attend(head_of(input, b, h), b, h, blocks - 1 - item % blocks);
  });
}

namespace {

void clear(View<float> view) {
  for (std::int64_t b = 0; b < view.extent(0); ++b) {
    for (std::int64_t s = 0; s < view.extent(1); ++s) {
      for (std::int64_t h = 0; h < view.extent(2); ++h) {
        std::fill_n(&view(b, s, h, 0), view.extent(3), 0.0F);
      }
    }
  }
}

// gradient (H, R) += shares (B, G, parts, H / G, S + T − 1) / scale, summed over B and parts.
void add_bias_gradients(const AttentionInput<float>& input, const float* shares, std::int64_t parts,
                        View<float> gradient) {
  const std::int64_t memory = input.key.extent(1), key_heads = input.key.extent(2);
  const std::int64_t heads = input.query.extent(2), group = heads / key_heads;
  const std::int64_t distances = memory + input.query.extent(1) - 1;
  const std::int64_t table = input.position_bias.values.extent(1);
  parallel_items(heads, [&](std::int64_t h) {
    for (std::int64_t i = 0; i < distances; ++i) {
      const std::int64_t at = i - (memory - 1) - input.position_bias.first;
      if (at < 0 || at >= table) continue;  // masked
      float sum = 0.0F;
      for (std::int64_t b = 0; b < input.query.extent(0); ++b) {
        for (std::int64_t part = 0; part < parts; ++part) {
          const std::int64_t item = (b * key_heads + h / group) * parts + part;
          sum += shares[(item * group + h % group) * distances + i];
        }
      }
      gradient(h, at) += sum / input.scale;
    }
  });
}

}  // namespace

void cpu::attention_backward(const AttentionInput<float>& input, View<const float> out,
                             View<const float> log_sum_exp, View<const float> d_out,
                             const AttentionGradients<float>& gradients) {
  checks::attention_output(input, out, log_sum_exp, "out");
  checks::heads(d_out, input.query.shape(), "d_out");
  checks::attention_gradients(input, gradients);
  const std::int64_t batch = input.query.extent(0), queries = input.query.extent(1);
  const std::int64_t heads = input.query.extent(2), size = input.query.extent(3);
  const std::int64_t memory = input.key.extent(1), key_heads = input.key.extent(2);
  if (batch * heads == 0) return;
  if (queries == 0) return clear(gradients.key), clear(gradients.value);
  const TileAttention* const in_tiles = tiles_for(input);
  const std::int64_t groups = batch * key_heads, group_heads = heads / key_heads;
  // With too few groups to balance the threads, each group's memory is distributed tile by tile
  // to several items, whose partial query gradients are summed in a fixed order.
  const std::int64_t threads = thread_count();
  const std::int64_t pieces =
      divide_up(memory, in_tiles != nullptr ? in_tiles->memory_piece(size) : key_block);
  const std::int64_t share = group_heads * queries * size;
  const std::int64_t parts =
      divides_evenly(groups)
          ? 1
          : std::clamp<std::int64_t>(divide_up(4 * threads, groups), 1,
                                     std::min(pieces, max_shared / (groups * share) + 1));
  const bool biased = gradients.position_bias.present();
  const std::int64_t bias_share = biased ? group_heads * (memory + queries - 1) : 0;
  const std::int64_t query_shares = parts == 1 ? 0 : groups * parts * share;
  float* const shares = scratch(
      Scratch::shared, static_cast<std::size_t>(query_shares + groups * parts * bias_share));

  parallel_items(groups * parts, [&](std::int64_t item) {
    const std::int64_t group_index = item / parts, part = item % parts;
    const BackwardGroup group{
        .input = input,
        .out = out,
        .log_sum_exp = log_sum_exp,
        .d_out = d_out,
        .results = gradients,
        .batch = group_index / key_heads,
        .first = group_index % key_heads * group_heads,
        .heads = group_heads,
        .partial_query = parts == 1 ? nullptr : shares + item * share,
        .partial_bias = biased ? shares + query_shares + item * bias_share : nullptr};
    if (in_tiles != nullptr) {
      in_tiles->attend_backward(group, part, parts);
    } else {
      attend_backward(group, part, parts);
    }
  });
  if (biased) add_bias_gradients(input, shares + query_shares, parts, gradients.position_bias);
  if (parts == 1) return;
  parallel_ranges(batch * heads * queries, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t plane = row / queries, t = row % queries;
      float* const to = &gradients.query(plane / heads, t, plane % heads, 0);
      const std::int64_t group = plane / group_heads, head = plane % group_heads;
      const float* const from = shares + group * parts * share + (head * queries + t) * size;
      for (std::int64_t k = 0; k < size; ++k) {
        float sum = 0.0F;
        for (std::int64_t part = 0; part < parts; ++part) sum += from[part * share + k];
        to[k] = sum;
      }
    }
  });
}

namespace {

// Splits a rectangle into tiles for attend_tile.
void tile_by_tile(const AttentionInput<float>& input, const float* log_sum_exp,
                  const AttentionTile& tile, View<float> out) {
  const Head head = head_of(input, tile.batch, tile.head);
  const std::int64_t rows = (out.extent(0) + query_block - 1) / query_block;
  const std::int64_t columns = (out.extent(1) + key_block - 1) / key_block;
  parallel_items(rows * columns, [&](std::int64_t item) {
    const std::int64_t query = tile.query_begin + item / columns * query_block;
    const std::int64_t key = tile.key_begin + item % columns * key_block;
    attend_tile(head, query, std::min(query + query_block, tile.query_end), key,
                std::min(key + key_block, tile.key_end), log_sum_exp,
                {&out(query - tile.query_begin, key - tile.key_begin), out.stride(0)});
  });
}

}  // namespace

void cpu::attention_scores_tile(const AttentionInput<float>& input, const AttentionTile& tile,
                                View<float> out) {
  checks::attention_tile(input, tile, out);
  tile_by_tile(input, nullptr, tile, out);
}

void cpu::attention_pattern_tile(const AttentionInput<float>& input, View<const float> log_sum_exp,
                                 const AttentionTile& tile, View<float> out) {
  checks::attention_tile(input, tile, out);
  checks::attention_pattern(input, log_sum_exp);
  tile_by_tile(input, &log_sum_exp(tile.batch, tile.head, 0), tile, out);
}

}  // namespace heed::kernels
