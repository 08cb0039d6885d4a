#include "engine/point_keeper.h"

#include <algorithm>
#include <limits>
#include <set>

#include "engine/facade.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {
namespace {

bool holds(const std::vector<Point>& points, const Point& point) {
  return std::ranges::find(points, point) != points.end();
}

}  // namespace

const LazyAttention* attention_reader(const std::vector<LazyAttention>& readers,
                                      const Point& plane) {
  const auto found = std::ranges::find_if(readers, [&](const LazyAttention& reader) {
    return reader.wants_attention_at(pattern_of(plane));
  });
  return found == readers.end() ? nullptr : &*found;
}

PointKeeper::PointKeeper(const Architecture& architecture, Request request, HookEditor* editor)
    : request_(std::move(request)), editor_(editor) {
  if (editor_ != nullptr) editor_->keep(request_.points);
  for (const AttentionSite site : sites_of(architecture)) add_reader(architecture, site);
}

void PointKeeper::add_reader(const Architecture& architecture, AttentionSite kind) {
  const std::vector<std::int64_t> layers = lazy_layers(pattern_point(kind, -1));
  if (layers.empty()) return;
  const std::int64_t queries =
      kind.stack == StackSite::encoder ? request_.sources : request_.positions;
  const std::int64_t keys = kind.kind == AttentionKind::cross ? request_.sources : queries;
  attention_.emplace_back(architecture, kind, queries, keys, layers);
}

// Layers in which tiles are computed of this pattern, or of its scores.
std::vector<std::int64_t> PointKeeper::lazy_layers(const Point& pattern) const {
  std::set<std::int64_t> layers;
  for (const Point& point : request_.points) {
    if (!is_lazy(point)) continue;
    const Point own = pattern_of(point);
    if (own.kind == pattern.kind && own.site == pattern.site) layers.insert(point.layer);
  }
  return {layers.begin(), layers.end()};
}

// Of one sequence, where no hook changes scores or pattern.
bool PointKeeper::is_lazy(const Point& point) const {
  if (!is_plane(point.kind) || request_.batch != 1) return false;
  const auto is_unchanged = [&](const Editor* editor) {
    return editor == nullptr ||
           (!editor->edits(scores_of(point)) && !editor->edits(pattern_of(point)));
  };
  return is_unchanged(editor_) && is_unchanged(request_.model_editor);
}

bool PointKeeper::wants(const Point& point) const {
  return holds(request_.points, point) && !is_lazy(point) &&
         (editor_ == nullptr || !editor_->keeps(point));
}

void PointKeeper::observe(const Point& point, View<const float> values) {
  kept_.insert_or_assign(point_name(point), by_text(point, values));
}

// (B, T, …) of what a probe sees of a pass.
Array PointKeeper::by_text(const Point& point, View<const float> values) const {
  const Sequences& rows = rows_of(point);
  if (!rows.is_ragged() || is_plane(point.kind)) return dense_copy(values);
  return make_array(padded(rows, values));
}

// (B, T, …) of what hooks left of each text of different lengths.
Array PointKeeper::by_text(const Point& point, std::vector<Array> texts) const {
  if (texts.size() == 1) return std::move(texts.front());
  std::vector<std::int64_t> extents = texts.front().shape();
  for (const Array& text : texts) {
    for (std::size_t i = 1; i < extents.size(); ++i) {
      extents[i] = std::max(extents[i], text.shape()[i]);
    }
  }
  extents[0] = std::ssize(texts);
  Tensor<float> all(Shape(extents.data(), static_cast<int>(extents.size())));
  all.fill(is_scores_point(point.kind) ? -std::numeric_limits<float>::infinity() : 0.0F);
  for (std::size_t b = 0; b < texts.size(); ++b) {
    const std::vector<std::int64_t>& own = texts[b].shape();
    View<float> part = all.view()[static_cast<std::int64_t>(b)];
    for (int i = 0; i < part.rank(); ++i) {
      part = part.slice(i, 0, own[static_cast<std::size_t>(i + 1)]);
    }
    copy_dense(texts[b], part);
  }
  return make_array(std::move(all));
}

bool PointKeeper::wants_attention_at(const Point& pattern) const {
  return attention_reader(attention_, pattern) != nullptr;
}

void PointKeeper::observe_attention_at(const Point& pattern,
                                       const kernels::AttentionInput<float>& input,
                                       View<const float> log_sum_exp, std::int64_t) {
  for (LazyAttention& reader : attention_) {
    if (!reader.wants_attention_at(pattern)) continue;
    reader.observe_attention(pattern.layer, input, log_sum_exp);
  }
}

bool PointKeeper::wants_gradient(const Point& point) const {
  return holds(request_.gradients, point);
}

void PointKeeper::observe_gradient(const Point& point, View<const float> values) {
  kept_.insert_or_assign(point_name(point) + std::string(gradient_suffix), by_text(point, values));
}

std::map<std::string, Array> PointKeeper::take() {
  for (const Point& point : request_.points) {
    if (editor_ == nullptr || !editor_->keeps(point)) continue;
    std::vector<Array> values = editor_->take(point);
    if (values.empty()) continue;
    kept_.insert_or_assign(point_name(point), by_text(point, std::move(values)));
  }
  return std::move(kept_);
}

}  // namespace heed
