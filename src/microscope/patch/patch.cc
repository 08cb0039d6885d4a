#include "microscope/patch/patch.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/patch/patch_cells.h"
#include "microscope/patch/patch_estimate.h"
#include "microscope/patch/patch_file.h"
#include "microscope/patch/patch_grid.h"
#include "microscope/patch/patch_passes.h"
#include "microscope/traces/point_names.h"
#include "model/input_checks.h"

namespace heed {
namespace {

void check_token(const Transformer& gpt, std::int32_t token, const char* what) {
  require(token >= 0 && token < gpt.specification().vocabulary_size, ErrorCode::invalid_argument,
          "{} {} is outside the model's vocabulary of {}", what, token,
          gpt.specification().vocabulary_size);
}

void check_request(const Transformer& gpt, const PatchRequest& request) {
  require_predicts_next(gpt.specification(), "patching");
  require(
      gpt.editor() == nullptr || request.results.empty(), ErrorCode::unsupported,
      "cells of a model with hooks or edits cannot be resumed from {}: what those change is not "
      "known there",
      request.results.string());
  require_sums_to_logits(gpt.specification(), "patching");
  const StackSpecification& config = gpt.specification();
  require_text_fits(config, request.clean, "the clean prompt");
  require(
      request.clean.size() == request.corrupted.size(), ErrorCode::invalid_argument,
      "the clean prompt has {} tokens and the corrupted one {}: patching needs the same number, "
      "token for token",
      request.clean.size(), request.corrupted.size());
  for (const std::int32_t token : request.clean) check_token(gpt, token, "token id");
  for (const std::int32_t token : request.corrupted) check_token(gpt, token, "token id");
  if (request.metric.kind != PatchMetric::Kind::kl) {
    check_token(gpt, request.metric.answer, "the answer");
  }
  if (request.metric.kind == PatchMetric::Kind::logit_difference) {
    check_token(gpt, request.metric.wrong, "the wrong answer");
    require(request.metric.answer != request.metric.wrong, ErrorCode::invalid_argument,
            "the answer and the wrong answer are the same token, {}", request.metric.answer);
  }
  require_point(config, {patch_grid_kind(request.grid).point, 0});
  if (request.method == PatchMethod::attribution) {
    require(!patch_grid_kind(request.grid).is_edge(), ErrorCode::invalid_argument,
            "attribution patching does not support the grid '{}' of single edges",
            patch_grid_name(request.grid));
    require(request.metric.kind == PatchMetric::Kind::logit_difference, ErrorCode::invalid_argument,
            "attribution patching supports the logit difference only");
  }
  if (!patch_grid_kind(request.grid).is_edge()) return;
  require(
      request.layer >= 0 && request.layer < config.layers && request.head >= 0 &&
          request.head < config.heads(),
      ErrorCode::invalid_argument,
      "edge grids need a head, and L{}H{} does not exist: the model has layers 0 to {} and heads 0 "
      "to {}",
      request.layer, request.head, config.layers - 1, config.heads() - 1);
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

// Encodes everything that cell values depend on.
std::string request_key(const Transformer& gpt, const PatchRequest& request) {
  std::string key =
      fmt::format("{} metric {} answer {} wrong {} head {}.{} weights {:a} {} clean",
                  patch_grid_name(request.grid), static_cast<int>(request.metric.kind),
                  request.metric.answer, request.metric.wrong, request.layer, request.head,
                  kernels::squared_norm(gpt.parameters().all()),
                  kernels::weight_format_name(gpt.parameters().prepared_format()));
  for (const std::int32_t token : request.clean) key += fmt::format(" {}", token);
  key += " corrupted";
  for (const std::int32_t token : request.corrupted) key += fmt::format(" {}", token);
  return key;
}

std::unique_ptr<CellRuns> cell_runs(const Transformer& gpt, const PatchRequest& request,
                                    const std::vector<std::int32_t>& predicted) {
  if (gpt.editor() != nullptr) return std::make_unique<PatchPasses>(gpt, request, predicted);
  return std::make_unique<PatchRuns>(gpt, request, predicted);
}

}  // namespace

double patch_metric(const PatchMetric& metric, std::span<const float> logits,
                    std::span<const float> clean) {
  const auto logit = [&](std::int32_t token) {
    return static_cast<double>(logits[static_cast<std::size_t>(token)]);
  };
  switch (metric.kind) {
    case PatchMetric::Kind::logit_difference: return logit(metric.answer) - logit(metric.wrong);
    case PatchMetric::Kind::probability:
      return std::exp(logit(metric.answer) - log_sum_exp(logits));
    case PatchMetric::Kind::kl: break;
  }
  const double total = log_sum_exp(logits);
  const double clean_total = log_sum_exp(clean);
  double divergence = 0;
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const double log_clean = clean[i] - clean_total;
    divergence += std::exp(log_clean) * (log_clean - (logits[i] - total));
  }
  return divergence;
}

PatchResult patch_sweep(const Transformer& gpt, const PatchRequest& request) {
  check_request(gpt, request);
  if (request.method == PatchMethod::attribution) return estimate_sweep(gpt, request);
  const std::vector<PatchCell> cells = patch_cells(gpt.specification(), request);
  const auto positions = static_cast<std::int64_t>(request.clean.size());
  PatchResult result{.grid = request.grid, .cells = std::ssize(cells)};
  result.rows = patch_grid_kind(request.grid).is_edge() ? positions : gpt.specification().layers;
  result.columns = patch_grid_kind(request.grid).is_edge()
                       ? positions
                       : std::ssize(cells) / gpt.specification().layers;
  result.values.assign(static_cast<std::size_t>(result.rows * result.columns),
                       std::numeric_limits<double>::quiet_NaN());
  PatchFile file(request.results,
                 request.results.empty() ? std::string() : request_key(gpt, request));
  result.resumed_cells = file.read(result.values);

  std::vector<std::int32_t> predicted;  // whose logits alone the metric reads
  if (request.metric.kind == PatchMetric::Kind::logit_difference) {
    predicted = {request.metric.answer, request.metric.wrong};
  }
  const std::unique_ptr<CellRuns> made = cell_runs(gpt, request, predicted);
  CellRuns& runs = *made;
  const auto metric = [&](std::span<const float> logits) {
    return predicted.empty() ? patch_metric(request.metric, logits, runs.clean_logits())
                             : double{logits[0]} - logits[1];
  };
  result.clean = metric(runs.clean_logits());
  result.corrupted = metric(runs.corrupted_logits());

  const auto place = [&](const PatchCell& cell) -> double& {
    return result.values[static_cast<std::size_t>(cell.row * result.columns + cell.column)];
  };
  const auto report = [&](std::int64_t finished) {
    const bool goes_on = !request.progress || request.progress(finished, result.cells);
    require(goes_on || finished == result.cells, ErrorCode::interrupted,
            "interrupted after {} of {} cells{}", finished, result.cells,
            request.results.empty() ? "" : "; repeat the call to resume");
  };
  const std::int64_t most_rows = request.memory / Variants::bytes_per_row(gpt.specification());
  std::int64_t done = 0;
  for (std::size_t begin = 0; begin < cells.size();) {
    // Unknown cells, as many as fit the memory limit.
    std::vector<PatchCell> together;
    std::int64_t rows = 0;
    for (; begin < cells.size(); ++begin, ++done) {
      const PatchCell& cell = cells[begin];
      if (!std::isnan(place(cell))) continue;
      if (runs.changes_nothing(cell)) {
        place(cell) = result.corrupted;
        continue;
      }
      const std::int64_t own_rows = positions - runs.first_position(cell);
      if (!together.empty() && rows + own_rows > most_rows) break;
      together.push_back(cell);
      rows += own_rows;
    }
    if (together.empty()) break;
    report(done - std::ssize(together));
    const Tensor<float> logits = runs.run(together);
    for (std::int64_t i = 0; i < std::ssize(together); ++i) {
      place(together[static_cast<std::size_t>(i)]) = metric(logits.view()[i].span());
    }
    file.write(result.values);
  }
  report(done);
  return result;
}

}  // namespace heed
