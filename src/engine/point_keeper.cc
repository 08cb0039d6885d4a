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

PointKeeper::PointKeeper(const StackSpecification& stack, Request request, HookEditor* editor,
                         const GradientHooks* gradient_hooks)
    : request_(std::move(request)), editor_(editor), gradient_hooks_(gradient_hooks) {
  if (editor_ != nullptr) editor_->keep(request_.points);
  std::set<std::int64_t> layers;
  for (const Point& point : request_.points) {
    if (is_lazy(point)) layers.insert(point.layer);
  }
  if (!layers.empty()) {
    attention_.emplace(stack, std::vector<std::int64_t>(layers.begin(), layers.end()),
                       request_.positions);
  }
}

// Of one sequence, where no hook changes scores or pattern.
bool PointKeeper::is_lazy(const Point& point) const {
  if (point.kind != PointKind::scores && point.kind != PointKind::pattern) return false;
  const auto is_edited = [&](PointKind kind) {
    return editor_ != nullptr && editor_->edits({kind, point.layer, point.site});
  };
  return request_.batch == 1 && !is_edited(PointKind::scores) && !is_edited(PointKind::pattern);
}

bool PointKeeper::wants(const Point& point) const {
  return holds(request_.points, point) && !is_lazy(point) &&
         (editor_ == nullptr || !editor_->keeps(point));
}

void PointKeeper::observe(const Point& point, View<const float> values) {
  if (wants(point)) kept_.insert_or_assign(point_name(point), dense_copy(values));
}

bool PointKeeper::wants_attention(std::int64_t layer) const {
  return attention_ && attention_->wants_attention(layer);
}

void PointKeeper::observe_attention(std::int64_t layer, const kernels::AttentionInput<float>& input,
                                    View<const float> log_sum_exp) {
  attention_->observe_attention(layer, input, log_sum_exp);
}

bool PointKeeper::wants_gradient(const Point& point) const {
  return holds(request_.gradients, point) ||
         (gradient_hooks_ != nullptr && gradient_hooks_->wants(point));
}

void PointKeeper::observe_gradient(const Point& point, View<const float> values) {
  if (gradient_hooks_ != nullptr) gradient_hooks_->call(point, values);
  if (holds(request_.gradients, point)) {
    kept_.insert_or_assign(point_name(point) + std::string(gradient_suffix), dense_copy(values));
  }
}

std::map<std::string, Array> PointKeeper::take() {
  for (const Point& point : request_.points) {
    if (editor_ == nullptr || !editor_->keeps(point)) continue;
    if (auto values = editor_->take(point)) kept_.insert_or_assign(point_name(point), *values);
  }
  return std::move(kept_);
}

}  // namespace heed
