#include "engine/point_keeper.h"

#include <algorithm>
#include <set>

#include "microscope/traces/point_names.h"

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
  kept_.insert_or_assign(point_name(point), dense_copy(values));
}

bool PointKeeper::wants_attention_at(const Point& pattern) const {
  return attention_reader(attention_, pattern) != nullptr;
}

void PointKeeper::observe_attention_at(const Point& pattern,
                                       const kernels::AttentionInput<float>& input,
                                       View<const float> log_sum_exp) {
  for (LazyAttention& reader : attention_) {
    if (!reader.wants_attention_at(pattern)) continue;
    reader.observe_attention(pattern.layer, input, log_sum_exp);
  }
}

bool PointKeeper::wants_gradient(const Point& point) const {
  return holds(request_.gradients, point);
}

void PointKeeper::observe_gradient(const Point& point, View<const float> values) {
  kept_.insert_or_assign(point_name(point) + std::string(gradient_suffix), dense_copy(values));
}

std::map<std::string, Array> PointKeeper::take() {
  for (const Point& point : request_.points) {
    if (editor_ == nullptr || !editor_->keeps(point)) continue;
    if (auto values = editor_->take(point)) kept_.insert_or_assign(point_name(point), *values);
  }
  return std::move(kept_);
}

}  // namespace heed
