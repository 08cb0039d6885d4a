// A file of finished cells, from which an interrupted patching sweep resumes.
#include "microscope/patch/patch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "kernels/kernels.h"
#include "microscope/explain/logit_gradients.h"
#include "microscope/patch/patch_cells.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

namespace heed {
namespace {

class PatchFile {
 public:
  // `key` identifies everything that the cells depend on. With an empty path nothing is written.
  PatchFile(std::filesystem::path path, std::string key);

  // Fills the values stored in the file and returns their number. Throws Error{conflict} if they
  // belong to another key and Error{corrupt_data} for a damaged file.
  std::int64_t read(std::vector<double>& values) const;

  // Replaces the file atomically; values that are NaN are not stored.
  void write(const std::vector<double>& values) const;

 private:
  std::filesystem::path path_;
  std::string key_;
};

PatchFile::PatchFile(std::filesystem::path path, std::string key)
    : path_(std::move(path)), key_(std::move(key)) {}

std::int64_t PatchFile::read(std::vector<double>& values) const {
  if (path_.empty() || !std::filesystem::exists(path_)) return 0;
  const Json document = parse_json(read_text_file(path_), path_.string());
  const bool is_ours = document.is_object() && document.contains("patch") &&
                       document["patch"].is_string() && document.contains("cells") &&
                       document["cells"].is_array();
  require(is_ours, ErrorCode::corrupt_data, "{} does not hold the cells of a patching sweep",
          path_.string());
  require(document["patch"] == key_ && document["cells"].size() == values.size(),
          ErrorCode::conflict,
          "{} holds the cells of another patching sweep; remove it or name another file",
          path_.string());
  std::int64_t known = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Json& cell = document["cells"][i];
    require(cell.is_number() || cell.is_null(), ErrorCode::corrupt_data,
            "cell {} of {} is neither a number nor null", i, path_.string());
    if (cell.is_null()) continue;
    values[i] = cell.get<double>();
    ++known;
  }
  return known;
}

void PatchFile::write(const std::vector<double>& values) const {
  if (path_.empty()) return;
  OrderedJson cells = OrderedJson::array();
  for (const double value : values) {
    cells.push_back(std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr));
  }
  write_text_file(path_, OrderedJson{{"patch", key_}, {"cells", std::move(cells)}}.dump() + "\n");
}

void check_token(const Transformer& model, std::int32_t token, const char* what) {
  const std::int64_t vocabulary = model.specification().vocabulary_size;
  require(token >= 0 && token < vocabulary, ErrorCode::invalid_argument,
          "{} {} is outside the model's vocabulary of {}", what, token, vocabulary);
}

void check_lengths(const std::vector<std::int32_t>& clean,
                   const std::vector<std::int32_t>& corrupted, const char* text) {
  require(clean.size() == corrupted.size(), ErrorCode::invalid_argument,
          "the clean {0} has {1} tokens and the corrupted one {2}: patching needs the same number, "
          "token for token",
          text, clean.size(), corrupted.size());
}

void check_texts(const Transformer& model, const PatchRequest& request) {
  const Architecture& architecture = model.architecture();
  if (architecture.is_encoder_decoder()) {
    check_lengths(request.clean.source, request.corrupted.source, "source");
    check_lengths(request.clean.target, request.corrupted.target, "target");
    require_texts_fit(architecture, request.clean);
    return require_texts_fit(architecture, request.corrupted);
  }
  require(request.clean.source.empty() && request.corrupted.source.empty(),
          ErrorCode::invalid_argument, "patching got sources: a model of one stack reads one text");
  require_text_fits(model.specification(), request.clean.target, "the clean prompt");
  check_lengths(request.clean.target, request.corrupted.target, "prompt");
  for (const std::int32_t token : request.clean.target) check_token(model, token, "token id");
  for (const std::int32_t token : request.corrupted.target) check_token(model, token, "token id");
}

// What the sweep of a model of one stack computes apart, a pass of two stacks does whole.
void check_model(const Transformer& model) {
  if (model.architecture().is_encoder_decoder()) return;
  require_predicts_next(model.specification(), "patching");
  require_stream_of_sums(model.specification(), "patching");
}

void check_request(const Transformer& model, const PatchRequest& request) {
  check_model(model);
  require(
      model.editor() == nullptr || request.results.empty(), ErrorCode::unsupported,
      "cells of a model with hooks or edits cannot be resumed from {}: what those change is not "
      "known there",
      request.results.string());
  check_texts(model, request);
  if (request.metric.kind == PatchMetric::Kind::own) {
    require(request.metric.own != nullptr, ErrorCode::invalid_argument,
            "the metric is a function of the caller's, and there is none");
    require(request.results.empty(), ErrorCode::invalid_argument,
            "cells of a metric of the caller's cannot be resumed from {}",
            request.results.string());
  } else if (request.metric.kind != PatchMetric::Kind::kl) {
    check_token(model, request.metric.answer, "the answer");
  }
  if (request.metric.kind == PatchMetric::Kind::logit_difference) {
    check_token(model, request.metric.wrong, "the wrong answer");
    require(request.metric.answer != request.metric.wrong, ErrorCode::invalid_argument,
            "the answer and the wrong answer are the same token, {}", request.metric.answer);
  }
  const PatchGridKind& kind = patch_grid_kind(request.grid);
  const PatchedSite site = patched_site(model.architecture(), request);
  require_point(model.architecture(), site.point(kind, 0));
  if (request.method == PatchMethod::attribution) {
    require(!kind.is_edge(), ErrorCode::invalid_argument,
            "attribution patching does not support the grid '{}' of single edges",
            patch_grid_name(request.grid));
    require(request.metric.kind == PatchMetric::Kind::logit_difference, ErrorCode::invalid_argument,
            "attribution patching supports the logit difference only");
  }
  if (!kind.is_edge()) return;
  const std::int64_t layers = model.specification(site.site.stack).layers;
  const std::int64_t heads = attention_of(model.architecture(), site.site).query_heads;
  require(
      request.layer >= 0 && request.layer < layers && request.head >= 0 && request.head < heads,
      ErrorCode::invalid_argument,
      "edge grids need a head, and L{}H{} does not exist: the model has layers 0 to {} and heads 0 "
      "to {}",
      request.layer, request.head, layers - 1, heads - 1);
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

// Encodes everything that cell values depend on.
std::string request_key(const Transformer& model, const PatchRequest& request) {
  std::string key = fmt::format(
      "{} metric {} answer {} wrong {} head {}.{} weights {:a} {} clean",
      patch_grid_name(request.grid), static_cast<int>(request.metric.kind), request.metric.answer,
      request.metric.wrong, request.layer, request.head, model.parameters().squared_norm(),
      kernels::weight_format_name(model.parameters().prepared_format()));
  for (const std::int32_t token : request.clean.target) key += fmt::format(" {}", token);
  key += " corrupted";
  for (const std::int32_t token : request.corrupted.target) key += fmt::format(" {}", token);
  if (!model.architecture().is_encoder_decoder()) return key;
  key +=
      fmt::format(" site {} clean source {} corrupted source {}",
                  site_name(patched_site(model.architecture(), request).site),
                  fmt::join(request.clean.source, " "), fmt::join(request.corrupted.source, " "));
  return key;
}

// Whether the query or key of a head is a part of what other heads' are divided by.
bool norms_heads_together(const StackSpecification& stack) {
  const AttentionSpecification& attention = stack.block.attention;
  return attention.query_key_norm && attention.head_norms == HeadNormExtent::all_heads;
}

std::unique_ptr<CellRuns> cell_runs(const Transformer& model, const PatchRequest& request,
                                    const std::vector<std::int32_t>& predicted) {
  if (model.editor() != nullptr || model.architecture().is_encoder_decoder() ||
      norms_heads_together(model.specification())) {
    return std::make_unique<PatchPasses>(model, request, predicted);
  }
  return std::make_unique<PatchRuns>(model, request, predicted);
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
    case PatchMetric::Kind::own: return metric.own(logits);
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

PatchResult patch_sweep(const Transformer& model, const PatchRequest& request) {
  check_request(model, request);
  if (request.method == PatchMethod::attribution) return estimate_sweep(model, request);
  const std::vector<PatchCell> cells = patch_cells(model.architecture(), request);
  const PatchedSite site = patched_site(model.architecture(), request);
  PatchResult result{.grid = request.grid, .cells = std::ssize(cells)};
  if (patch_grid_kind(request.grid).is_edge()) {
    result.rows = site.queries;
    result.columns = site.keys;
  } else {
    result.rows = model.specification(site.site.stack).layers;
    result.columns = std::ssize(cells) / result.rows;
  }
  result.values.assign(static_cast<std::size_t>(result.rows * result.columns),
                       std::numeric_limits<double>::quiet_NaN());
  PatchFile file(request.results,
                 request.results.empty() ? std::string() : request_key(model, request));
  result.resumed_cells = file.read(result.values);

  std::vector<std::int32_t> predicted;  // whose logits alone the metric reads
  if (request.metric.kind == PatchMetric::Kind::logit_difference) {
    predicted = {request.metric.answer, request.metric.wrong};
  }
  const std::unique_ptr<CellRuns> made = cell_runs(model, request, predicted);
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
  const std::int64_t max_rows = runs.rows_in(request.memory);
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
      const std::int64_t own_rows = std::ssize(request.clean.target) - runs.first_position(cell);
      if (!together.empty() && rows + own_rows > max_rows) break;
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

namespace {

using enum PatchColumns;

// In the order of PatchGrid.
constexpr std::array<PatchGridKind, 17> kinds{{
    {"resid_pre", PointKind::residual_pre, positions},
    {"resid_mid", PointKind::residual_mid, positions},
    {"attn_out", PointKind::attention_out, positions},
    {"mlp_out", PointKind::feed_forward_out, positions},
    {"attn_head_out", PointKind::mixed_values, heads},
    {"attn_head_q", PointKind::query, heads},
    {"attn_head_k", PointKind::key, heads},
    {"attn_head_v", PointKind::value, heads},
    {"attn_head_pattern", PointKind::pattern, heads},
    {"attn_head_out_by_pos", PointKind::mixed_values, heads_by_position},
    {"attn_head_q_by_pos", PointKind::query, heads_by_position},
    {"attn_head_k_by_pos", PointKind::key, heads_by_position},
    {"attn_head_v_by_pos", PointKind::value, heads_by_position},
    {"attn_head_pattern_by_pos", PointKind::pattern, heads_by_position},
    {"edge", PointKind::pattern, keys},
    {"edge_cut", PointKind::pattern, keys},
    {"edge_cut_renormalised", PointKind::pattern, keys},
}};

}  // namespace

const PatchGridKind& patch_grid_kind(PatchGrid grid) {
  return kinds.at(static_cast<std::size_t>(grid));
}

Point PatchedSite::point(const PatchGridKind& kind, std::int64_t layer) const {
  if (site.kind != AttentionKind::cross) return {kind.point, layer, site.stack};
  const auto of_cross = [&] {
    switch (kind.point) {
      case PointKind::residual_mid: return PointKind::residual_cross;
      case PointKind::attention_out: return PointKind::cross_attention_out;
      case PointKind::mixed_values: return PointKind::cross_mixed_values;
      case PointKind::query: return PointKind::cross_query;
      case PointKind::key: return PointKind::cross_key;
      case PointKind::value: return PointKind::cross_value;
      case PointKind::pattern: return PointKind::cross_pattern;
      default: break;
    }
    fail(ErrorCode::invalid_argument,
         "the grid '{}' is of a stack: expected the site encoder or decoder, not cross", kind.name);
  };
  return {of_cross(), layer, site.stack};
}

PatchedSite patched_site(const Architecture& architecture, const PatchRequest& request) {
  const bool is_pair = architecture.is_encoder_decoder();
  const auto positions = std::ssize(request.clean.target),
             sources = std::ssize(request.clean.source);
  const std::string_view name = !request.site.empty() ? std::string_view(request.site)
                                : is_pair             ? "encoder"
                                                      : "self";
  const std::optional<AttentionSite> site = site_named(name, architecture);
  require(site.has_value(), ErrorCode::invalid_argument,
          "there is no site '{}' to patch: expected {}", name,
          is_pair ? "encoder, decoder or cross" : "none, of a model of one stack");
  if (*site == encoder_site) return {*site, sources, sources};
  return {*site, positions, *site == cross_site ? sources : positions};
}

std::int64_t patched_heads(const AttentionSpecification& attention, const PatchGridKind& kind) {
  const bool is_shared = kind.point == PointKind::key || kind.point == PointKind::value;
  return is_shared ? attention.key_value_heads : attention.query_heads;
}

std::vector<std::string> patched_head_names(const AttentionSpecification& attention,
                                            const PatchGridKind& kind) {
  const std::int64_t count = patched_heads(attention, kind), group = attention.query_heads / count;
  std::vector<std::string> names;
  for (std::int64_t head = 0; head < count; ++head) {
    const std::int64_t first = head * group;
    names.push_back(group == 1 ? fmt::format("H{}", head)
                               : fmt::format("H{}-{}", first, first + group - 1));
  }
  return names;
}

const char* patch_grid_name(PatchGrid grid) { return patch_grid_kind(grid).name; }

std::vector<std::string> patch_grid_names() {
  std::vector<std::string> names;
  for (const PatchGridKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

PatchGrid patch_grid_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (name == kinds[i].name) return static_cast<PatchGrid>(i);
  }
  fail(ErrorCode::invalid_argument, "there is no patching grid '{}'; did you mean '{}'?", name,
       fmt::join(nearest_names(name, patch_grid_names(), 3), "', '"));
}

PatchResult estimate_sweep(const Transformer& model, const PatchRequest& request) {
  check_model(model);
  const PatchGridKind& kind = patch_grid_kind(request.grid);
  const PatchedSite site = patched_site(model.architecture(), request);
  const std::int64_t layers = model.specification(site.site.stack).layers;
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < layers; ++layer) points.push_back(site.point(kind, layer));
  const AttributionPatching found =
      estimate_patching(model, request.clean, request.corrupted,
                        {.question = {request.metric.answer, request.metric.wrong}}, points);

  const std::int64_t positions = site.positions(kind);
  const std::int64_t heads = patched_heads(attention_of(model.architecture(), site.site), kind);
  PatchResult result{.grid = request.grid,
                     .rows = layers,
                     .clean = found.clean_metric,
                     .corrupted = found.corrupted_metric};
  const bool by_position = kind.columns == PatchColumns::heads_by_position;
  result.columns = kind.columns == PatchColumns::positions ? positions
                   : by_position                           ? heads * positions
                                                           : heads;
  result.cells = result.rows * result.columns;
  result.values.assign(static_cast<std::size_t>(result.cells), found.corrupted_metric);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const View<const float> effects = found.effects[static_cast<std::size_t>(layer)].view()[0];
    double* const row = result.values.data() + layer * result.columns;
    for (std::int64_t t = 0; t < positions; ++t) {
      if (kind.columns == PatchColumns::positions) {
        row[t] += effects(t);
        continue;
      }
      for (std::int64_t head = 0; head < heads; ++head) {
        const float effect = kind.point == PointKind::pattern ? effects(head, t) : effects(t, head);
        row[by_position ? head * positions + t : head] += effect;
      }
    }
  }
  if (request.progress) request.progress(result.cells, result.cells);
  return result;
}

}  // namespace heed
