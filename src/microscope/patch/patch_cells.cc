#include "microscope/patch/patch_cells.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/attention/visible_keys.h"
#include "model/attention.h"

namespace heed {
namespace {

Tensor<float> read(const Transformer& model, const std::vector<std::int32_t>& tokens,
                   std::span<const std::int32_t> predicted, const StackActivations& activations) {
  const auto positions = static_cast<std::int64_t>(tokens.size());
  model.forward(View<const std::int32_t>(tokens.data(), {1, positions}),
                {.sequences = {1, positions}}, activations);
  return model.project_tokens(activations.final_norm().slice(0, positions - 1, positions),
                              predicted, positions);
}

// The first position at which the prompts differ; 0 where they are the same.
std::int64_t first_difference(const PatchRequest& request) {
  if (request.clean.target == request.corrupted.target) return 0;
  return std::ranges::mismatch(request.clean.target, request.corrupted.target).in1 -
         request.clean.target.begin();
}

void copy_row(View<const float> from, std::int64_t row, View<float> to, std::int64_t to_row) {
  kernels::copy(from[row], to[to_row]);
}

}  // namespace

std::vector<PatchCell> patch_cells(const Architecture& architecture, const PatchRequest& request) {
  const PatchGridKind& kind = patch_grid_kind(request.grid);
  const PatchedSite site = patched_site(architecture, request);
  const AttentionSpecification& attention = attention_of(architecture, site.site);
  const std::int64_t positions = site.positions(kind);
  std::vector<PatchCell> cells;
  if (kind.is_edge()) {
    for (std::int64_t t = 0; t < site.queries; ++t) {
      const VisibleKeys keys = visible_keys(attention, request.layer, t, site.keys);
      for (std::int64_t s = keys.begin; s < keys.end; ++s) {
        cells.push_back({t, s, request.layer, request.head, t, s});
      }
    }
    return cells;
  }
  for (std::int64_t layer = 0; layer < architecture.of(site.site.stack).layers; ++layer) {
    if (kind.columns == PatchColumns::positions) {
      for (std::int64_t t = 0; t < positions; ++t) cells.push_back({layer, t, layer, -1, t});
      continue;
    }
    for (std::int64_t head = 0; head < patched_heads(attention, kind); ++head) {
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

PatchRuns::PatchRuns(const Transformer& model, const PatchRequest& request,
                     std::vector<std::int32_t> predicted)
    : model_(model),
      predicted_(std::move(predicted)),
      grid_(request.grid),
      kind_(patch_grid_kind(request.grid)),
      first_difference_(first_difference(request)),
      clean_(model.specification(), 1, std::ssize(request.clean.target), Keep::every_block),
      corrupted_(model.specification(), 1, std::ssize(request.corrupted.target), Keep::every_block),
      clean_logits_(read(model, request.clean.target, predicted_, clean_)),
      corrupted_logits_(read(model, request.corrupted.target, predicted_, corrupted_)) {}

std::int64_t PatchRuns::first_position(const PatchCell& cell) const {
  return cell.position >= 0 ? cell.position : first_difference_;
}

// The rows that the patched layer itself changes and that are read: after the last layer only the
// last row is. Rows after them equal the corrupted run's until the next layer's attention.
struct PatchRuns::Changed {
  std::int64_t begin;
  std::int64_t end;
};

PatchRuns::Changed PatchRuns::changed_rows(const PatchCell& cell) const {
  const std::int64_t first = first_position(cell);
  // A key or value affects its own position and all later ones.
  const bool spreads =
      cell.position < 0 || kind_.point == PointKind::key || kind_.point == PointKind::value;
  const std::int64_t end = spreads ? clean_.positions() : first + 1;
  const bool reads_last_row = entered_layer(cell) == model_.specification().layers;
  return {reads_last_row ? std::min(end, std::max(first, clean_.positions() - 1)) : first, end};
}

bool PatchRuns::changes_nothing(const PatchCell& cell) const {
  if (!kind_.is_edge() && cell.position >= 0 && cell.position < first_difference_) return true;
  const Changed changed = changed_rows(cell);
  return changed.begin == changed.end;
}

// The query heads that a cell changes: one, or the group that shares a key or value.
PatchRuns::Changed PatchRuns::changed_heads(const PatchCell& cell) const {
  const AttentionSpecification& attention = model_.specification().block.attention;
  if (kind_.point != PointKind::key && kind_.point != PointKind::value) {
    return {cell.head, cell.head + 1};
  }
  const std::int64_t group = attention.group_size();
  return {cell.head * group, (cell.head + 1) * group};
}

// Computes mixed (R, D) of a query head that the cell changes, at the changed rows.
void PatchRuns::mix(const PatchCell& cell, std::int64_t head, View<float> mixed) const {
  if (kind_.is_edge()) return mix_edge(cell, mixed);
  const AttentionSpecification& attention = model_.specification().block.attention;
  const std::int64_t d = attention.head_size, positions = clean_.positions();
  const Changed changed = changed_rows(cell);
  const AttentionActivations& clean = clean_.block(cell.layer).attention;
  const AttentionActivations& corrupted = corrupted_.block(cell.layer).attention;
  if (kind_.point == PointKind::mixed_values) {
    for (std::int64_t t = changed.begin; t < changed.end; ++t) {
      std::copy_n(&clean.mixed_values(t, head * d), d, &mixed(t - changed.begin, 0));
    }
    return;
  }
  // The queries, keys and values of the head, partly from the clean run.
  const Heads<const float> clean_heads = attention_heads(attention, 1, clean);
  const Heads<const float> corrupted_heads = attention_heads(attention, 1, corrupted);
  const auto gathered = [&](View<const float> from_clean, View<const float> from_corrupted,
                            std::int64_t index, bool patched, bool whole) {
    Tensor<float> rows(Shape{1, positions, 1, d});
    for (std::int64_t t = 0; t < positions; ++t) {
      const bool is_clean = patched && (whole || cell.position < 0 || cell.position == t);
      const View<const float>& from = is_clean ? from_clean : from_corrupted;
      std::copy_n(&from(0, t, index, 0), d, rows.data() + t * d);
    }
    return rows;
  };
  const bool of_pattern = kind_.point == PointKind::pattern;
  const std::int64_t shared = head / attention.group_size();
  const Tensor<float> query = gathered(clean_heads.query, corrupted_heads.query, head,
                                       of_pattern || kind_.point == PointKind::query, false);
  // A row of the clean pattern: the clean query against all clean keys.
  const Tensor<float> key = gathered(clean_heads.key, corrupted_heads.key, shared,
                                     of_pattern || kind_.point == PointKind::key, of_pattern);
  const Tensor<float> value = gathered(clean_heads.value, corrupted_heads.value, shared,
                                       kind_.point == PointKind::value, false);
  Tensor<float> out(Shape{1, positions, 1, d});
  Tensor<float> log_sum_exp(Shape{1, 1, positions});
  const Pass pass{.sequences = {1, positions}};
  const RotaryRows none;
  const LayerPass at = model_.layer_pass(cell.layer, pass, none);
  attend(at, AttentionKind::self, attention_input(at, AttentionKind::self, {query, key, value}),
         out, log_sum_exp);
  std::copy_n(out.data() + changed.begin * d, (changed.end - changed.begin) * d, mixed.data());
}

// mixed (1, D): the corrupted row of the pattern with one weight changed, times the values.
void PatchRuns::mix_edge(const PatchCell& cell, View<float> mixed) const {
  const AttentionSpecification& attention = model_.specification().block.attention;
  const std::int64_t d = attention.head_size, positions = clean_.positions();
  const Pass pass{.sequences = {1, positions}};
  const RotaryRows none;
  const LayerPass at = model_.layer_pass(cell.layer, pass, none);
  const auto shares_of = [&](const StackActivations& run) {
    const AttentionActivations& saved = run.block(cell.layer).attention;
    Tensor<float> shares(Shape{1, positions});
    kernels::attention_pattern_tile(saved_attention_input(at, saved), saved.log_sum_exp,
                                    {.head = cell.head,
                                     .query_begin = cell.position,
                                     .query_end = cell.position + 1,
                                     .key_begin = 0,
                                     .key_end = positions},
                                    shares);
    return shares;
  };
  Tensor<float> shares = shares_of(corrupted_);
  const float cut = shares[cell.key];
  shares[cell.key] = grid_ == PatchGrid::edge ? shares_of(clean_)[cell.key] : 0.0F;
  const AttentionActivations& corrupted = corrupted_.block(cell.layer).attention;
  if (shares[cell.key] == cut) {  // nothing changes
    std::copy_n(&corrupted.mixed_values(cell.position, cell.head * d), d, &mixed(0, 0));
    return;
  }
  const double factor =
      grid_ == PatchGrid::edge_cut_renormalised && cut < 1 ? 1 / (1 - static_cast<double>(cut)) : 1;
  const View<const float> value = attention_heads(attention, 1, corrupted).value;
  for (std::int64_t i = 0; i < d; ++i) {
    double sum = 0;
    for (std::int64_t s = 0; s < positions; ++s) {
      if (shares[s] == 0) continue;
      sum += static_cast<double>(shares[s]) * value(0, s, cell.head / attention.group_size(), i);
    }
    mixed(0, i) = static_cast<float>(factor * sum);
  }
}

// The streams as the corrupted run has them, before or after the patched layer, with what needs no
// computing put back.
void PatchRuns::fill_streams(std::span<const PatchCell> cells, std::int64_t first_variant,
                             const Variants& variants) const {
  const BlockActivations& clean = clean_.block(cells.front().layer);
  const BlockActivations& corrupted = corrupted_.block(cells.front().layer);
  const bool enters_before = kind_.point == PointKind::residual_pre;
  const View<const float> stem = enters_before ? corrupted.residual_pre : corrupted.residual_post;
  for (std::int64_t i = 0; i < std::ssize(cells); ++i) {
    const std::int64_t first = variants.first(first_variant + i);
    const View<float> stream = variants.stream(first_variant + i);
    for (std::int64_t t = first; t < clean_.positions(); ++t) {
      copy_row(stem, t, stream, t - first);
    }
    if (enters_before) copy_row(clean.residual_pre, first, stream, 0);
    // The feed-forward output of a clean residual_mid is the clean run's.
    if (kind_.point == PointKind::residual_mid) copy_row(clean.residual_post, first, stream, 0);
  }
  if (kind_.point != PointKind::feed_forward_out) return;
  // What the clean run's feed-forward layer adds, to the corrupted stream.
  const std::int64_t rows = std::ssize(cells);
  Tensor<float> neurons(Shape{rows, model_.specification().feed_forward()});
  Tensor<float> added(Shape{rows, model_.specification().channels});
  for (std::int64_t i = 0; i < rows; ++i) {
    copy_row(clean.feed_forward.post, variants.first(first_variant + i), neurons, i);
  }
  const Pass pass{.sequences = {1, clean_.positions()}};
  const BlockParameters& block = model_.parameters().block(cells.front().layer);
  project(pass, neurons, block.down, added);
  norm_output(model_.specification(), block.feed_forward_out_norm, added);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t variant = first_variant + i;
    kernels::add(corrupted.residual_mid[variants.first(variant)], added.view()[i],
                 variants.stream(variant)[0]);
  }
}

// The stream (R, C) after attention at the changed rows of all cells, for patches inside attention.
Tensor<float> PatchRuns::patched_middles(std::span<const PatchCell> cells,
                                         std::span<const std::int64_t> positions) const {
  const std::int64_t layer = cells.front().layer, d = model_.specification().head_size();
  const BlockActivations& clean = clean_.block(layer);
  const BlockActivations& corrupted = corrupted_.block(layer);
  const std::int64_t rows = std::ssize(positions);
  const auto position_of = [&](std::int64_t row) {
    return positions[static_cast<std::size_t>(row)];
  };
  Tensor<float> mixed(Shape{rows, model_.specification().attention_width()});
  const bool is_clean = kind_.point == PointKind::attention_out;
  for (std::int64_t row = 0; row < rows; ++row) {
    copy_row(is_clean ? clean.attention.mixed_values : corrupted.attention.mixed_values,
             position_of(row), mixed, row);
  }
  if (!is_clean) {
    std::int64_t first_row = 0;
    for (const PatchCell& cell : cells) {
      const auto [begin, end] = changed_rows(cell);
      if (begin == end) continue;
      const auto [first_head, last_head] = changed_heads(cell);
      for (std::int64_t head = first_head; head < last_head; ++head) {
        Tensor<float> of_head(Shape{end - begin, d});
        mix(cell, head, of_head);
        for (std::int64_t row = 0; row < end - begin; ++row) {
          std::copy_n(&of_head.view()(row, 0), d, &mixed.view()(first_row + row, head * d));
        }
      }
      first_row += end - begin;
    }
  }
  Tensor<float> middles(Shape{rows, model_.specification().channels});
  const Pass pass{.sequences = {1, clean_.positions()}};
  const BlockParameters& block = model_.parameters().block(layer);
  project(pass, mixed, block.projection, middles);
  norm_output(model_.specification(), block.attention_out_norm, middles);
  for (std::int64_t row = 0; row < rows; ++row) {
    const View<float> middle = middles.view()[row];
    kernels::add(corrupted.residual_pre[position_of(row)], middle, middle);
  }
  return middles;
}

// The layer whose residual_pre a patch changes.
std::int64_t PatchRuns::entered_layer(const PatchCell& cell) const {
  return kind_.point == PointKind::residual_pre ? cell.layer : cell.layer + 1;
}

// The streams of cells that patch one layer, variants from `first_variant` on, as they enter.
void PatchRuns::enter(std::span<const PatchCell> cells, std::int64_t first_variant,
                      Variants& variants) const {
  fill_streams(cells, first_variant, variants);
  const std::int64_t layer = cells.front().layer;
  if (kind_.point == PointKind::residual_pre || kind_.point == PointKind::residual_mid ||
      kind_.point == PointKind::feed_forward_out) {
    return;
  }
  std::vector<std::int64_t> positions;  // of the changed rows of all cells
  for (const PatchCell& cell : cells) {
    const Changed changed = changed_rows(cell);
    for (std::int64_t t = changed.begin; t < changed.end; ++t) positions.push_back(t);
  }
  Tensor<float> streams = patched_middles(cells, positions);
  Tensor<float> before;  // where feed-forward reads the stream before the block
  if (model_.specification().is_parallel()) {
    before = Tensor<float>(streams.shape());
    for (std::int64_t row = 0; row < std::ssize(positions); ++row) {
      copy_row(corrupted_.block(layer).residual_pre, positions[static_cast<std::size_t>(row)],
               before, row);
    }
  }
  variants.add_feed_forward(layer, before.present() ? before.view() : streams.view(), streams);
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < std::ssize(cells); ++i) {
    const std::int64_t variant = first_variant + i;
    const Changed changed = changed_rows(cells[static_cast<std::size_t>(i)]);
    for (std::int64_t t = changed.begin; t < changed.end; ++t, ++row) {
      copy_row(streams, row, variants.stream(variant), t - variants.first(variant));
    }
  }
}

// Cells of early layers are on their way when those of later layers enter: a block runs once.
Tensor<float> PatchRuns::run(std::span<const PatchCell> cells) {
  std::vector<std::int64_t> firsts;
  for (const PatchCell& cell : cells) firsts.push_back(first_position(cell));
  Variants variants(model_, corrupted_, std::move(firsts));
  const std::int64_t layers = model_.specification().layers;
  std::size_t active = 0;
  for (std::int64_t layer = entered_layer(cells.front()); layer <= layers; ++layer) {
    const std::size_t begin = active;
    while (active < cells.size() && entered_layer(cells[active]) == layer) ++active;
    if (active > begin) {
      enter(cells.subspan(begin, active - begin), static_cast<std::int64_t>(begin), variants);
    }
    if (layer < layers) variants.run_block(layer, static_cast<std::int64_t>(active));
  }
  check(active == cells.size(), "cells in the order of their layers");
  return variants.logits(predicted_);
}

std::int64_t PatchRuns::rows_in(std::int64_t bytes) const {
  return bytes / Variants::bytes_per_row(model_.specification());
}

PatchPasses::PatchPasses(const Transformer& model, const PatchRequest& request,
                         std::vector<std::int32_t> predicted)
    : model_(model),
      request_(request),
      predicted_(std::move(predicted)),
      kind_(patch_grid_kind(request.grid)),
      site_(patched_site(model.architecture(), request)),
      clean_logits_(logits_of(request.clean, nullptr)),
      corrupted_logits_(logits_of(request.corrupted, nullptr)) {
  if (request.grid == PatchGrid::edge) {
    corrupted_pattern_ = values_at(model, site_.point(kind_, request.layer), request.corrupted);
  }
}

Tensor<float> PatchPasses::logits_of(const Texts& texts, Editor* editor) {
  RecordedPass pass(model_, texts, borrowed_editor(editor),
                    {.keep = Keep::one_block, .reused = std::move(buffers_)});
  const std::int64_t positions = pass.positions();
  Tensor<float> logits = model_.project_tokens(pass.final_rows().slice(0, positions - 1, positions),
                                               predicted_, positions);
  buffers_ = pass.take_buffers();
  return logits;
}

const ReplaceWith& PatchPasses::clean_values(std::int64_t layer) {
  const auto found = clean_.find(layer);
  if (found != clean_.end()) return found->second;
  return clean_.emplace(layer, values_at(model_, site_.point(kind_, layer), request_.clean))
      .first->second;
}

Change PatchPasses::change_of(const PatchCell& cell) {
  if (request_.grid == PatchGrid::edge) {
    Tensor<float> pattern(corrupted_pattern_.shape());
    std::ranges::copy(corrupted_pattern_.span(), pattern.data());
    pattern.view()(0, cell.head, cell.position, cell.key) =
        clean_values(cell.layer).values->view()(0, cell.head, cell.position, cell.key);
    return ReplaceWith(std::move(pattern));
  }
  if (kind_.is_edge()) {
    return CutEdges{.edges = {{cell.position, cell.key}},
                    .rest = request_.grid == PatchGrid::edge_cut_renormalised
                                ? CutEdges::Rest::renormalised
                                : CutEdges::Rest::kept};
  }
  return clean_values(cell.layer);
}

Tensor<float> PatchPasses::run(std::span<const PatchCell> cells) {
  Tensor<float> logits(Shape{std::ssize(cells), clean_logits_.size()});
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const PatchCell& cell = cells[i];
    Selection where;
    if (cell.head >= 0) where.heads = {cell.head};
    if (cell.position >= 0) where.first_position = where.last_position = cell.position;
    Interventions patch(model_.architecture(),
                        {{site_.point(kind_, cell.layer), std::move(where), change_of(cell)}});
    const Tensor<float> patched = logits_of(request_.corrupted, &patch);
    std::ranges::copy(patched.span(), logits.view()[static_cast<std::int64_t>(i)].data());
  }
  return logits;
}

}  // namespace heed
