#include "microscope/attention/lazy_attention.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "kernels/attention_summaries.h"
#include "kernels/elements.h"
#include "kernels/kernels.h"
#include "microscope/attention/visible_keys.h"
#include "model/here.h"
#include "model/input_checks.h"

namespace heed {
namespace {

// The largest pool of one kernel call.
constexpr std::int64_t max_pooled_at_once = 64;

kernels::AttentionTile tile_of(const AttentionRegion& region) {
  return {.batch = 0,
          .head = 0,
          .query_begin = region.query_begin,
          .query_end = region.query_end,
          .key_begin = region.key_begin,
          .key_end = region.key_end};
}

// Pairs in the rectangle of a cell whose key is not masked.
std::int64_t visible_pairs(const LazyAttention& attention, const AttentionRegion& cell) {
  std::int64_t pairs = 0;
  for (std::int64_t t = cell.query_begin; t < cell.query_end; ++t) {
    const VisibleKeys keys = attention.visible_keys(cell.layer, t);
    pairs += std::max<std::int64_t>(
        std::min(keys.end, cell.key_end) - std::max(keys.begin, cell.key_begin), 0);
  }
  return pairs;
}

// Of the weights at positions [first, last).
std::vector<AttendedPosition> largest_of(const std::vector<float>& weights, std::int64_t first,
                                         std::int64_t last, std::size_t count) {
  std::vector<AttendedPosition> positions;
  for (std::int64_t i = first; i < last; ++i) {
    positions.push_back({i, weights[static_cast<std::size_t>(i)]});
  }
  const auto end =
      positions.begin() + static_cast<std::ptrdiff_t>(std::min(count, positions.size()));
  std::partial_sort(positions.begin(), end, positions.end(), [](const auto& a, const auto& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.position < b.position;
  });
  positions.erase(end, positions.end());
  return positions;
}

}  // namespace

AttentionRegion checked_region(const LazyAttention& attention, AttentionRegion region) {
  const std::int64_t positions = attention.positions(region.layer);
  const std::int64_t keys = attention.keys(region.layer);
  require(region.head >= 0 && region.head < attention.heads(), ErrorCode::invalid_argument,
          "head {} does not exist: a layer has heads 0 to {}", region.head, attention.heads() - 1);
  require(region.pool >= 1 && (region.pool & (region.pool - 1)) == 0, ErrorCode::invalid_argument,
          "a pool of {} is not a power of two", region.pool);
  region.query_end = std::min(region.query_end, positions);
  region.key_end = std::min(region.key_end, keys);
  require(region.query_begin >= 0 && region.key_begin >= 0 &&
              region.query_begin < region.query_end && region.key_begin < region.key_end,
          ErrorCode::invalid_argument, "queries [{}, {}) and keys [{}, {}) are empty within {}",
          region.query_begin, region.query_end, region.key_begin, region.key_end,
          keys == positions ? fmt::format("{} positions", positions)
                            : fmt::format("{} queries and {} keys", positions, keys));
  return region;
}

LazyAttention::LazyAttention(const Architecture& architecture, AttentionSite site,
                             std::int64_t queries, std::int64_t keys,
                             std::vector<std::int64_t> layers)
    : pattern_(pattern_point(site, -1)),
      layers_(std::move(layers)),
      attention_(attention_of(architecture, site)),
      capacity_(queries),
      key_capacity_(keys) {
  const StackSpecification& stack = architecture.of(site.stack);
  if (layers_.empty()) {
    layers_.resize(static_cast<std::size_t>(stack.layers));
    std::iota(layers_.begin(), layers_.end(), 0);
  }
  for (const std::int64_t layer : layers_) checked_layer(layer, stack);
  make_layers();
}

LazyAttention::LazyAttention(const StackSpecification& config, std::vector<std::int64_t> layers,
                             std::int64_t positions)
    : LazyAttention(Architecture{.stacks = {config}}, only_site, positions, positions,
                    std::move(layers)) {}

std::int64_t LazyAttention::bytes() const {
  std::size_t bytes = 0;
  for (const Layer& layer : kept_) {
    for (const Tensor<float>* rows : {&layer.query, &layer.keys.rows, &layer.rounded_keys.rows,
                                      &layer.log_sum_exp, &layer.bias}) {
      bytes += rows->span().size_bytes();
    }
  }
  return static_cast<std::int64_t>(bytes);
}

void LazyAttention::make_layers() {
  require(capacity_ >= 1 && key_capacity_ >= 1, ErrorCode::invalid_argument,
          "capacity of {} positions: expected at least one", std::min(capacity_, key_capacity_));
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& kept = kept_.emplace_back();
    kept.query = Tensor<float>(Shape{heads(), capacity_, attention_.head_size});
    kept.log_sum_exp = Tensor<float>(Shape{heads(), capacity_});
  }
}

std::int64_t LazyAttention::bytes_needed(const AttentionSpecification& attention,
                                         std::int64_t queries, std::int64_t keys) {
  return (queries * (attention.query_width() + attention.query_heads) +
          keys * attention.key_value_width()) *
         static_cast<std::int64_t>(sizeof(float));
}

bool LazyAttention::wants_attention(std::int64_t layer) const {
  return std::ranges::find(layers_, layer) != layers_.end();
}

bool LazyAttention::wants_attention_at(const Point& pattern) const {
  return pattern.kind == pattern_.kind && pattern.site == pattern_.site &&
         wants_attention(pattern.layer);
}

const LazyAttention::Layer& LazyAttention::at(std::int64_t layer) const {
  const auto found = std::ranges::find(layers_, layer);
  require(found != layers_.end(), ErrorCode::invalid_argument,
          "the attention of layer {} was not recorded", layer);
  return kept_[static_cast<std::size_t>(found - layers_.begin())];
}

std::int64_t LazyAttention::positions(std::int64_t layer) const { return at(layer).positions; }
std::int64_t LazyAttention::keys(std::int64_t layer) const { return at(layer).memory; }

VisibleKeys LazyAttention::visible_keys(std::int64_t layer, std::int64_t query) const {
  return heed::visible_keys(attention_, layer, query, keys(layer));
}

void LazyAttention::observe_attention(std::int64_t layer,
                                      const kernels::AttentionInput<float>& input,
                                      View<const float> log_sum_exps) {
  const Here queries(input.query), memories(input.key), log_sums(log_sum_exps);
  const View<const float> query = queries.values(), key = memories.values();
  const View<const float> log_sum_exp = log_sums.values();
  const auto index = std::ranges::find(layers_, layer) - layers_.begin();
  Layer& kept = kept_[static_cast<std::size_t>(index)];
  const std::int64_t added = query.extent(1);
  const std::int64_t memory = key.extent(1);
  require(query.extent(0) == 1, ErrorCode::invalid_argument,
          "attention is recorded for one sequence, not for a batch of {}", query.extent(0));
  const bool is_cross = pattern_.kind == PointKind::cross_pattern;
  require(is_cross || kept.positions + added == memory, ErrorCode::invalid_argument,
          "{} positions after {} do not make a memory of {}: the probe must observe every pass",
          added, kept.positions, memory);
  require(!is_cross || kept.memory == 0 || kept.memory == memory, ErrorCode::invalid_argument,
          "a source of {} positions after one of {}: the probe observes one source", memory,
          kept.memory);
  require(memory <= key_capacity_ && kept.positions + added <= capacity_,
          ErrorCode::invalid_argument, "{} positions exceed the capacity of {}",
          memory > key_capacity_ ? memory : kept.positions + added,
          memory > key_capacity_ ? key_capacity_ : capacity_);
  const kernels::Precision precision = score_precision(input);
  if (kept.spans.empty() || kept.spans.back().precision != precision) {
    kept.spans.push_back({kept.positions, precision});
  }
  keep_keys(precision == kernels::Precision::bf16 ? kept.rounded_keys : kept.keys, key, precision);
  for (std::int64_t h = 0; h < heads(); ++h) {
    for (std::int64_t t = 0; t < added; ++t) {
      const std::int64_t to = kept.positions + t;
      std::transform(&query(0, t, h, 0), &query(0, t, h, 0) + attention_.head_size,
                     &kept.query.view()(h, to, 0),
                     [&](float value) { return rounded_to(precision, value); });
      kept.log_sum_exp.view()(h, to) = log_sum_exp(0, h, t);
    }
  }
  keep_bias(kept, input.position_bias);
  kept.positions += added;
  kept.memory = memory;
}

// The table of the longest pass has the distances of all.
void LazyAttention::keep_bias(Layer& kept, const kernels::PositionBias<float>& bias) const {
  if (!bias.present() || (kept.bias.present() && kept.bias.shape()[1] >= bias.values.extent(1))) {
    return;
  }
  kept.bias = Tensor<float>(bias.values.shape());
  kernels::copy(bias.values, kept.bias);
  kept.first_distance = bias.first;
}

// memory (1, S, G, D)
void LazyAttention::keep_keys(Keys& keys, View<const float> memory,
                              kernels::Precision precision) const {
  const std::int64_t shared = attention_.key_value_heads, size = attention_.head_size;
  if (keys.positions == 0) keys.rows = Tensor<float>(Shape{shared, key_capacity_, size});
  for (std::int64_t g = 0; g < shared; ++g) {
    for (std::int64_t s = keys.positions; s < memory.extent(1); ++s) {
      std::transform(&memory(0, s, g, 0), &memory(0, s, g, 0) + size, &keys.rows.view()(g, s, 0),
                     [&](float value) { return rounded_to(precision, value); });
    }
  }
  keys.positions = memory.extent(1);
}

kernels::AttentionInput<float> LazyAttention::head_input(std::int64_t layer, std::int64_t head,
                                                         std::int64_t query) const {
  const Layer& kept = at(layer);
  const auto after = std::ranges::upper_bound(kept.spans, query, {}, &Span::begin);
  const Keys& keys =
      after != kept.spans.begin() && std::prev(after)->precision == kernels::Precision::bf16
          ? kept.rounded_keys
          : kept.keys;
  const auto rows = [&](const Tensor<float>& all, std::int64_t index, std::int64_t count) {
    return View<const float>(&all.view()(index, 0, 0), {1, count, 1, attention_.head_size});
  };
  const View<const float> key = rows(keys.rows, head / attention_.group_size(), kept.memory);
  kernels::PositionBias<float> bias;
  if (kept.bias.present()) {
    bias = {.values = kept.bias.view().slice(0, head, head + 1), .first = kept.first_distance};
  }
  return {.query = rows(kept.query, head, kept.positions),
          .key = key,
          .value = key,
          .mask = attention_.mask_kind(),
          .scale = attention_.score_scale(),
          .window = attention_.window(layer),
          .soft_cap = attention_.soft_cap,
          .position_bias = bias};
}

std::int64_t LazyAttention::precision_end(std::int64_t layer, std::int64_t query) const {
  const Layer& kept = at(layer);
  const auto after = std::ranges::upper_bound(kept.spans, query, {}, &Span::begin);
  return after == kept.spans.end() ? kept.positions : after->begin;
}

View<const float> LazyAttention::log_sum_exp(std::int64_t layer, std::int64_t head) const {
  const Layer& kept = at(layer);
  return {&kept.log_sum_exp.view()(head, 0), {1, 1, kept.positions}};
}

Tensor<float> LazyAttention::region(const AttentionRegion& wanted) const {
  const AttentionRegion region = checked_region(*this, wanted);
  if (region.pool > 1) return finish_pooling(*this, pool_region(*this, region), region);
  Tensor<float> out(
      Shape{region.query_end - region.query_begin, region.key_end - region.key_begin});
  for (std::int64_t begin = region.query_begin; begin < region.query_end;) {
    AttentionRegion part = region;
    part.query_begin = begin;
    part.query_end = std::min(region.query_end, precision_end(region.layer, begin));
    const View<float> rows =
        out.view().slice(0, begin - region.query_begin, part.query_end - region.query_begin);
    const auto input = head_input(region.layer, region.head, begin);
    if (region.values == AttentionValues::pattern) {
      kernels::attention_pattern_tile(input, log_sum_exp(region.layer, region.head), tile_of(part),
                                      rows);
    } else {
      kernels::attention_scores_tile(input, tile_of(part), rows);
    }
    begin = part.query_end;
  }
  return out;
}

std::vector<float> LazyAttention::row(std::int64_t layer, std::int64_t head,
                                      std::int64_t query) const {
  const Tensor<float> weights = region({.layer = layer,
                                        .head = head,
                                        .query_begin = query,
                                        .query_end = query + 1,
                                        .key_begin = 0,
                                        .key_end = visible_keys(layer, query).end});
  return {weights.span().begin(), weights.span().end()};
}

std::vector<float> LazyAttention::column(std::int64_t layer, std::int64_t head,
                                         std::int64_t key) const {
  const Tensor<float> weights = region({.layer = layer,
                                        .head = head,
                                        .query_begin = 0,
                                        .query_end = positions(layer),
                                        .key_begin = key,
                                        .key_end = key + 1});
  return {weights.span().begin(), weights.span().end()};
}

std::vector<AttendedPosition> LazyAttention::most_attended(std::int64_t layer, std::int64_t head,
                                                           std::int64_t query,
                                                           std::size_t count) const {
  const VisibleKeys keys = visible_keys(layer, query);
  return largest_of(row(layer, head, query), keys.begin, keys.end, count);
}

std::vector<AttendedPosition> LazyAttention::most_attending(std::int64_t layer, std::int64_t head,
                                                            std::int64_t key,
                                                            std::size_t count) const {
  const std::vector<float> weights = column(layer, head, key);
  // Queries that see a key follow each other.
  std::int64_t first = 0;
  while (first < std::ssize(weights) && !visible_keys(layer, first).contains(key)) ++first;
  std::int64_t last = first;
  while (last < std::ssize(weights) && visible_keys(layer, last).contains(key)) ++last;
  return largest_of(weights, first, last, count);
}

PooledRegion pool_region(const LazyAttention& attention, const AttentionRegion& wanted) {
  const AttentionRegion region = checked_region(attention, wanted);
  const std::int64_t pool = std::min(region.pool, max_pooled_at_once);
  const Shape cells{(region.query_end - region.query_begin + pool - 1) / pool,
                    (region.key_end - region.key_begin + pool - 1) / pool};
  PooledRegion pooled{Tensor<float>(cells), Tensor<float>(cells)};
  for (std::int64_t begin = region.query_begin; begin < region.query_end;) {
    AttentionRegion part = region;
    part.query_begin = begin;
    part.query_end = std::min(region.query_end, attention.precision_end(region.layer, begin));
    // Whole cells, except the last. A cell whose queries were computed in both precisions is
    // handled
    // separately.
    if (part.query_end < region.query_end) {
      part.query_end -= (part.query_end - region.query_begin) % pool;
    }
    const bool mixed = part.query_end == begin;
    if (mixed) part.query_end = std::min(begin + pool, region.query_end);
    const std::int64_t first_row = (begin - region.query_begin) / pool;
    const std::int64_t last_row = (part.query_end - region.query_begin + pool - 1) / pool;
    const View<float> sum = pooled.sum.view().slice(0, first_row, last_row);
    const View<float> largest = pooled.largest.view().slice(0, first_row, last_row);
    if (mixed) {
      part.pool = 1;
      const PooledRegion row = pool_elements(attention.region(part), pool);
      std::ranges::copy(row.sum.span(), sum.data());
      std::ranges::copy(row.largest.span(), largest.data());
    } else {
      kernels::attention_pooled_tile(attention.head_input(region.layer, region.head, begin),
                                     region.values == AttentionValues::pattern
                                         ? attention.log_sum_exp(region.layer, region.head)
                                         : View<const float>{},
                                     tile_of(part), pool, {sum, largest});
    }
    begin = part.query_end;
  }
  return region.pool > pool ? pool_further(pooled, region.pool / pool) : std::move(pooled);
}

PooledRegion pool_elements(View<const float> elements, std::int64_t pool) {
  const Shape cells{(elements.extent(0) + pool - 1) / pool, (elements.extent(1) + pool - 1) / pool};
  PooledRegion pooled{Tensor<float>(cells), Tensor<float>(cells)};
  pooled.largest.fill(-std::numeric_limits<float>::infinity());
  for (std::int64_t t = 0; t < elements.extent(0); ++t) {
    for (std::int64_t s = 0; s < elements.extent(1); ++s) {
      const float value = elements(t, s);
      if (std::isfinite(value)) pooled.sum.view()(t / pool, s / pool) += value;
      float& largest = pooled.largest.view()(t / pool, s / pool);
      largest = std::max(largest, value);
    }
  }
  return pooled;
}

PooledRegion pool_further(const PooledRegion& fine, std::int64_t factor) {
  const std::int64_t rows = fine.sum.shape()[0], columns = fine.sum.shape()[1];
  const Shape cells{(rows + factor - 1) / factor, (columns + factor - 1) / factor};
  PooledRegion coarse{Tensor<float>(cells), Tensor<float>(cells)};
  coarse.largest.fill(-std::numeric_limits<float>::infinity());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      coarse.sum.view()(i / factor, j / factor) += fine.sum.view()(i, j);
      float& largest = coarse.largest.view()(i / factor, j / factor);
      largest = std::max(largest, fine.largest.view()(i, j));
    }
  }
  return coarse;
}

Tensor<float> finish_pooling(const LazyAttention& attention, const PooledRegion& pooled,
                             const AttentionRegion& region) {
  const Shape& cells = pooled.sum.shape();
  Tensor<float> out(cells);
  for (std::int64_t i = 0; i < cells[0]; ++i) {
    for (std::int64_t j = 0; j < cells[1]; ++j) {
      float& cell = out.view()(i, j);
      if (region.pooling == Pooling::max) {
        cell = pooled.largest.view()(i, j);
        continue;
      }
      AttentionRegion part = region;  // the cell
      part.query_begin = region.query_begin + i * region.pool;
      part.query_end = std::min(part.query_begin + region.pool, region.query_end);
      part.key_begin = region.key_begin + j * region.pool;
      part.key_end = std::min(part.key_begin + region.pool, region.key_end);
      const std::int64_t elements =
          region.values == AttentionValues::pattern
              ? (part.query_end - part.query_begin) * (part.key_end - part.key_begin)
              : visible_pairs(attention, part);
      cell = elements > 0 ? pooled.sum.view()(i, j) / static_cast<float>(elements)
                          : -std::numeric_limits<float>::infinity();
    }
  }
  return out;
}

}  // namespace heed
