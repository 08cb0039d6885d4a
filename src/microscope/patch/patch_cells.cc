#include "microscope/patch/patch_cells.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"

namespace heed {
namespace {

Tensor<float> read(const Gpt& gpt, const std::vector<std::int32_t>& tokens,
                   const GptActivations& activations) {
  const auto positions = static_cast<std::int64_t>(tokens.size());
  gpt.forward(View<const std::int32_t>(tokens.data(), {1, positions}), {.positions = positions},
              activations);
  Tensor<float> logits(Shape{1, gpt.config().vocabulary_size});
  gpt.project(activations.final_norm().slice(0, positions - 1, positions), logits);
  return logits;
}

void copy_row(View<const float> from, std::int64_t row, View<float> to, std::int64_t to_row) {
  std::copy_n(&from(row, 0), from.extent(1), &to(to_row, 0));
}

// out = base + with - without, rows of matrices.
void replace_term(View<const float> base, View<const float> with, View<const float> without,
                  std::int64_t row, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = base(row, i) + (with(row, i) - without(row, i));
  }
}

}  // namespace

std::vector<PatchCell> patch_cells(const GptConfig& config, const PatchRequest& request) {
  const auto positions = static_cast<std::int64_t>(request.clean.size());
  std::vector<PatchCell> cells;
  const PatchGridKind& kind = patch_grid_kind(request.grid);
  if (kind.is_edge()) {
    for (std::int64_t t = 0; t < positions; ++t) {
      for (std::int64_t s = 0; s <= t; ++s) {
        cells.push_back({t, s, request.layer, request.head, t, s});
      }
    }
    return cells;
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (kind.columns == PatchColumns::positions) {
      for (std::int64_t t = 0; t < positions; ++t) cells.push_back({layer, t, layer, -1, t});
      continue;
    }
    for (std::int64_t head = 0; head < config.heads; ++head) {
      if (kind.columns == PatchColumns::heads) {
        cells.push_back({layer, head, layer, head});
        continue;
      }
      for (std::int64_t t = 0; t < positions; ++t) {
        cells.push_back({layer, head * positions + t, layer, head, t});
      }
    }
  }
  return cells;
}

PatchRuns::PatchRuns(const Gpt& gpt, const PatchRequest& request)
    : gpt_(gpt),
      grid_(request.grid),
      kind_(patch_grid_kind(request.grid)),
      clean_(gpt.config(), 1, std::ssize(request.clean), Keep::every_block),
      corrupted_(gpt.config(), 1, std::ssize(request.corrupted), Keep::every_block),
      clean_logits_(read(gpt, request.clean, clean_)),
      corrupted_logits_(read(gpt, request.corrupted, corrupted_)) {}

std::int64_t PatchRuns::first_position(const PatchCell& cell) const {
  return std::max<std::int64_t>(cell.position, 0);
}

// The rows that the patched layer itself changes; rows after them equal the corrupted run's until
// the next layer's attention.
struct PatchRuns::Changed {
  std::int64_t begin;
  std::int64_t end;
};

PatchRuns::Changed PatchRuns::changed_rows(const PatchCell& cell) const {
  const std::int64_t first = first_position(cell);
  // A key or value affects its own position and all later ones.
  const bool spreads =
      cell.position < 0 || kind_.point == PointKind::key || kind_.point == PointKind::value;
  return {first, spreads ? clean_.positions() : first + 1};
}

// Computes mixed (R, D) of the patched head at the changed rows.
void PatchRuns::mix(const PatchCell& cell, View<float> mixed) const {
  if (kind_.is_edge()) return mix_edge(cell, mixed);
  const GptConfig& config = gpt_.config();
  const std::int64_t a = config.attention_width(), d = config.head_size;
  const std::int64_t column = cell.head * d, positions = clean_.positions();
  const Changed changed = changed_rows(cell);
  const auto& clean = clean_.block(cell.layer).attention;
  const auto& corrupted = corrupted_.block(cell.layer).attention;
  if (kind_.point == PointKind::mixed_values) {
    for (std::int64_t t = changed.begin; t < changed.end; ++t) {
      std::copy_n(&clean.mixed_values(t, column), d, &mixed(t - changed.begin, 0));
    }
    return;
  }
  // The queries, keys and values of the head, partly from the clean run.
  const auto gathered = [&](std::int64_t offset, bool patched) {
    Tensor<float> rows(Shape{1, positions, 1, d});
    for (std::int64_t t = 0; t < positions; ++t) {
      const bool is_clean = patched && (cell.position < 0 || cell.position == t);
      const View<float> from = is_clean ? clean.query_key_value : corrupted.query_key_value;
      std::copy_n(&from(t, offset + column), d, rows.data() + t * d);
    }
    return rows;
  };
  const bool whole_pattern = kind_.point == PointKind::pattern;
  const Tensor<float> query = gathered(0, kind_.point == PointKind::query || whole_pattern);
  // A row of the clean pattern: the clean query against all clean keys.
  Tensor<float> key = gathered(a, kind_.point == PointKind::key || whole_pattern);
  if (whole_pattern) {
    for (std::int64_t t = 0; t < positions; ++t) {
      std::copy_n(&clean.query_key_value(t, a + column), d, key.data() + t * d);
    }
  }
  const Tensor<float> value = gathered(2 * a, kind_.point == PointKind::value);
  Tensor<float> out(Shape{1, positions, 1, d});
  Tensor<float> log_sum_exp(Shape{1, 1, positions});
  kernels::attention_forward({.query = query,
                              .key = key,
                              .value = value,
                              .mask = kernels::Mask::causal,
                              .scale = 1.0F / std::sqrt(static_cast<float>(d))},
                             out, log_sum_exp);
  std::copy_n(out.data() + changed.begin * d, (changed.end - changed.begin) * d, mixed.data());
}

// mixed (1, D): the corrupted row of the pattern with one weight changed, times the values.
void PatchRuns::mix_edge(const PatchCell& cell, View<float> mixed) const {
  const GptConfig& config = gpt_.config();
  const std::int64_t a = config.attention_width(), d = config.head_size;
  const std::int64_t column = cell.head * d, positions = clean_.positions();
  const auto shares_of = [&](const GptActivations& run) {
    const auto& attention = run.block(cell.layer).attention;
    const View<float> rows = attention.query_key_value.reshape({1, positions, 3 * a});
    const auto heads = [&](std::int64_t begin) {
      return rows.slice(2, begin, begin + a).split_last(config.heads, d);
    };
    Tensor<float> shares(Shape{1, positions});
    kernels::attention_pattern_tile({.query = heads(0),
                                     .key = heads(a),
                                     .value = heads(2 * a),
                                     .mask = kernels::Mask::causal,
                                     .scale = 1.0F / std::sqrt(static_cast<float>(d))},
                                    attention.log_sum_exp,
                                    {.head = cell.head,
                                     .query_begin = cell.position,
                                     .query_end = cell.position + 1,
                                     .key_begin = 0,
                                     .key_end = positions},
                                    shares);
    return shares;
  };
  Tensor<float> shares = shares_of(corrupted_);
  const double cut = shares[cell.key];
  shares[cell.key] = grid_ == PatchGrid::edge ? shares_of(clean_)[cell.key] : 0.0F;
  const double factor = grid_ == PatchGrid::edge_cut_renormalised && cut < 1 ? 1 / (1 - cut) : 1;
  const View<float> rows = corrupted_.block(cell.layer).attention.query_key_value;
  for (std::int64_t i = 0; i < d; ++i) {
    double sum = 0;
    for (std::int64_t s = 0; s <= cell.position; ++s) {
      sum += static_cast<double>(shares[s]) * rows(s, 2 * a + column + i);
    }
    mixed(0, i) = static_cast<float>(factor * sum);
  }
}

// The streams as the corrupted run has them, before or behind the patched layer, with what needs no
// computing put back.
void PatchRuns::fill_streams(std::span<const PatchCell> cells, const Variants& variants) const {
  const BlockActivations& clean = clean_.block(cells.front().layer);
  const BlockActivations& corrupted = corrupted_.block(cells.front().layer);
  const bool enters_before = kind_.point == PointKind::residual_pre;
  const View<const float> stem = enters_before ? corrupted.residual_pre : corrupted.residual_post;
  for (std::int64_t i = 0; i < std::ssize(cells); ++i) {
    const std::int64_t first = variants.first(i);
    const View<float> stream = variants.stream(i);
    for (std::int64_t t = first; t < clean_.positions(); ++t) {
      copy_row(stem, t, stream, t - first);
    }
    if (enters_before) copy_row(clean.residual_pre, first, stream, 0);
    // The feed-forward output of a clean residual_mid is the clean run's.
    if (kind_.point == PointKind::residual_mid) copy_row(clean.residual_post, first, stream, 0);
    if (kind_.point == PointKind::feed_forward_out) {
      replace_term(corrupted.residual_mid, clean.residual_post, clean.residual_mid, first,
                   stream[0].span());
    }
  }
}

// residual_mid (R, C) of the changed rows of all cells, for patches inside attention.
Tensor<float> PatchRuns::patched_middles(std::span<const PatchCell> cells) const {
  const BlockActivations& clean = clean_.block(cells.front().layer);
  const BlockActivations& corrupted = corrupted_.block(cells.front().layer);
  const std::int64_t d = gpt_.config().head_size;
  std::vector<std::int64_t> positions;  // of each row
  for (const PatchCell& cell : cells) {
    const Changed changed = changed_rows(cell);
    for (std::int64_t t = changed.begin; t < changed.end; ++t) positions.push_back(t);
  }
  const std::int64_t rows = std::ssize(positions);
  Tensor<float> middles(Shape{rows, gpt_.config().channels});
  if (kind_.point == PointKind::attention_out) {
    for (std::int64_t row = 0; row < rows; ++row) {
      replace_term(corrupted.residual_pre, clean.residual_mid, clean.residual_pre, positions[row],
                   middles.view()[row].span());
    }
    return middles;
  }
  Tensor<float> mixed(Shape{rows, gpt_.config().attention_width()});
  std::int64_t row = 0;
  for (const PatchCell& cell : cells) {
    const Changed changed = changed_rows(cell);
    Tensor<float> of_head(Shape{changed.end - changed.begin, d});
    mix(cell, of_head);
    for (std::int64_t t = changed.begin; t < changed.end; ++t, ++row) {
      copy_row(corrupted.attention.mixed_values, t, mixed, row);
      std::copy_n(&of_head.view()(t - changed.begin, 0), d, &mixed.view()(row, cell.head * d));
    }
  }
  kernels::linear_forward(mixed, gpt_.parameters().block(cells.front().layer).projection, middles);
  for (row = 0; row < rows; ++row) {
    const View<float> middle = middles.view()[row];
    kernels::add(corrupted.residual_pre[positions[row]], middle, middle);
  }
  return middles;
}

Tensor<float> PatchRuns::run(std::span<const PatchCell> cells) const {
  std::vector<std::int64_t> firsts;
  for (const PatchCell& cell : cells) firsts.push_back(first_position(cell));
  Variants variants(gpt_, corrupted_, std::move(firsts));
  fill_streams(cells, variants);
  const std::int64_t layer = cells.front().layer;
  if (kind_.point == PointKind::residual_pre) return variants.run(layer);
  if (kind_.point == PointKind::residual_mid || kind_.point == PointKind::feed_forward_out) {
    return variants.run(layer + 1);
  }

  Tensor<float> changed_rows_after = patched_middles(cells);
  variants.feed_forward(layer, changed_rows_after);
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < std::ssize(cells); ++i) {
    const Changed changed = changed_rows(cells[i]);
    for (std::int64_t t = changed.begin; t < changed.end; ++t, ++row) {
      copy_row(changed_rows_after, row, variants.stream(i), t - variants.first(i));
    }
  }
  return variants.run(layer + 1);
}

}  // namespace heed
