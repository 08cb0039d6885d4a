#include "engine/hooks.h"

#include <algorithm>

#include "base/error.h"
#include "engine/arrays.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

// Most spare buffers of hooks: a pass has few shapes.
constexpr std::size_t most_spare = 4;

// Calls visit(dense row, row of the view) for the rows of a view of any strides.
template <class T, class Visit>
void visit_rows_of(View<T> view, float*& dense, const Visit& visit) {
  if (view.rank() > 1) {
    for (std::int64_t i = 0; i < view.extent(0); ++i) visit_rows_of(view[i], dense, visit);
    return;
  }
  visit(dense, view);
  dense += view.extent(0);
}

void copy_from(View<const float> values, float* dense) {
  visit_rows_of(values, dense, [](float* to, View<const float> row) {
    if (row.stride(0) == 1) {
      std::copy_n(row.data(), row.extent(0), to);
    } else {
      for (std::int64_t i = 0; i < row.extent(0); ++i) to[i] = row(i);
    }
  });
}

void copy_to(const float* from, View<float> values) {
  float* dense = const_cast<float*>(from);  // only read
  visit_rows_of(values, dense, [](const float* own, View<float> row) {
    for (std::int64_t i = 0; i < row.extent(0); ++i) row(i) = own[i];
  });
}

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace

Array dense_copy(View<const float> values) {
  Tensor<float> dense(values.shape());
  copy_from(values, dense.data());
  return make_array(std::move(dense));
}

HookEditor::HookEditor(const StackSpecification& stack, const std::vector<Hook>& hooks)
    : hooks_(hooks) {
  for (const Hook& hook : hooks_) {
    for (const Point& point : points_named(hook.where, stack)) {
      calls_[point_name(point)].push_back(&hook);
    }
  }
}

const HookEditor::Calls* HookEditor::calls_at(const Point& point) const {
  if (calls_.empty()) return nullptr;
  const auto found = calls_.find(point_name(point));
  return found == calls_.end() ? nullptr : &found->second;
}

bool HookEditor::keeps(const Point& point) const {
  if (calls_.empty() || std::ranges::find(kept_points_, point) == kept_points_.end()) return false;
  if (calls_at(point) != nullptr) return true;
  // A pattern follows from the scores that a hook left.
  return point.kind == PointKind::pattern &&
         calls_at({PointKind::scores, point.layer, point.site}) != nullptr;
}

bool HookEditor::edits(const Point& point) const {
  return calls_at(point) != nullptr || keeps(point);
}

void HookEditor::keep(const std::vector<Point>& points) { kept_points_ = points; }

std::optional<Array> HookEditor::take(const Point& point) {
  const auto found = kept_.find(point_name(point));
  if (found == kept_.end()) return std::nullopt;
  return std::move(found->second);
}

Array HookEditor::memory_for(const Shape& shape) {
  const auto fits = std::ranges::find(spare_, static_cast<std::size_t>(shape.size()), &Array::size);
  if (fits == spare_.end()) return make_array(Tensor<float>(shape));
  Array memory = fits->reshaped(extents(shape));
  spare_.erase(fits);
  return memory;
}

// Memory that nobody else holds serves the next call.
void HookEditor::recycle(Array values) {
  if (values.owner().use_count() == 1 && spare_.size() < most_spare) {
    spare_.push_back(std::move(values));
  }
}

void HookEditor::edit(const EditedPoint& edited, View<float> values) {
  const std::string name = point_name(edited.point);
  if (const auto left = left_.find(name); left != left_.end()) {
    if (left->second.shape() == extents(values.shape())) {
      return copy_to(left->second.data(), values);
    }
  }
  Array array = memory_for(values.shape());
  copy_from(values, array.data());
  const Calls* const calls = calls_at(edited.point);
  if (calls != nullptr) {
    const HookedPoint point{.name = name, .first_position = edited.position(0, 0)};
    for (const Hook* hook : *calls) {
      hook->call(point, array);
      require(array.shape() == extents(values.shape()), ErrorCode::invalid_argument,
              "the hook at '{}' left values of shape {}, expected {}", name,
              shape_text(array.shape()), shape_text(extents(values.shape())));
    }
    copy_to(array.data(), values);
  }
  if (keeps(edited.point)) kept_[name] = array;
  // What a pass edits once for each reader is remembered until it ends.
  switch (edited.point.kind) {
    case PointKind::embedding:
    case PointKind::position:
    case PointKind::attention_in:
    case PointKind::query_input:
    case PointKind::key_input:
    case PointKind::value_input:
    case PointKind::feed_forward_in:
    case PointKind::norm_1_normalized:
    case PointKind::norm_2_normalized:
    case PointKind::final_normalized:
    case PointKind::head_results: left_[name] = std::move(array); break;
    default: recycle(std::move(array));
  }
}

GradientHooks::GradientHooks(const StackSpecification& stack, const std::vector<Hook>& hooks)
    : hooks_(hooks) {
  for (const Hook& hook : hooks_) points_.push_back(points_named(hook.where, stack));
}

bool GradientHooks::wants(const Point& point) const {
  return std::ranges::any_of(points_, [&](const std::vector<Point>& points) {
    return std::ranges::find(points, point) != points.end();
  });
}

void GradientHooks::call(const Point& point, View<const float> gradient) const {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    if (std::ranges::find(points_[i], point) == points_[i].end()) continue;
    Array values = dense_copy(gradient);
    hooks_[i].call({.name = point_name(point)}, values);
  }
}

void HookProbe::observe(const Point& point, View<const float> values) {
  if (editor_ != nullptr && point.kind == PointKind::residual_pre && point.layer == 0) {
    editor_->begin_pass();
  }
  if (poll_) poll_();
  if (next_ != nullptr) next_->observe(point, values);
}

void HookProbe::observe_attention_at(const Point& pattern,
                                     const kernels::AttentionInput<float>& input,
                                     View<const float> log_sum_exp) {
  next_->observe_attention_at(pattern, input, log_sum_exp);
}

bool HookProbe::wants_gradient(const Point& point) const {
  return next_ != nullptr && next_->wants_gradient(point);
}

void HookProbe::observe_gradient(const Point& point, View<const float> values) {
  if (poll_) poll_();
  next_->observe_gradient(point, values);
}

}  // namespace heed
