#include "engine/hooks.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "engine/facade.h"
#include "engine/point_keeper.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

// Most spare buffers of hooks: a pass has few shapes.
constexpr std::size_t max_spare = 4;

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

// Whether a view has the bits of dense numbers.
bool is_same(View<const float> values, const float* dense) {
  float* at = const_cast<float*>(dense);  // only read
  bool same = true;
  visit_rows_of(values, at, [&](const float* own, View<const float> row) {
    for (std::int64_t i = 0; i < row.extent(0); ++i) {
      same = same && std::bit_cast<std::uint32_t>(own[i]) == std::bit_cast<std::uint32_t>(row(i));
    }
  });
  return same;
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

void copy_dense(const Array& from, View<float> values) { copy_to(from.data(), values); }

HookEditor::HookEditor(const Architecture& architecture, const std::vector<Hook>& hooks,
                       const std::vector<Hook>& gradient_hooks,
                       const std::vector<GradientTarget::PointWeights>& weights)
    : hooks_(hooks),
      gradient_hooks_(gradient_hooks),
      calls_(calls_of(architecture, hooks_)),
      gradient_calls_(calls_of(architecture, gradient_hooks_)) {
  read_weights(architecture, weights);
}

void HookEditor::read_weights(const Architecture& architecture,
                              const std::vector<GradientTarget::PointWeights>& weights) {
  for (const auto& [name, values] : weights) {
    const std::vector<Point> points = points_named(name, architecture);
    require(points.size() == 1, ErrorCode::invalid_argument,
            "weights are of one point, and '{}' names {}", name, points.size());
    require(gradient_is_editable(points.front().kind), ErrorCode::unsupported,
            "the value at '{}' cannot be weighted: expected q, k, v, z, neurons, inputs or outputs "
            "of branches, the stream, or weights of logits",
            point_name(points.front()));
    const bool is_new = weights_.emplace(point_name(points.front()), values).second;
    require(is_new, ErrorCode::invalid_argument, "'{}' is weighted twice", name);
  }
}

// Of one of several texts of different lengths, or of all: weights (B, T, …) of the longest.
void HookEditor::add_weights(const std::string& point, std::int64_t text, Array& gradient) const {
  const Array& weights = weights_.at(point);
  std::vector<std::int64_t> given = weights.shape(), wanted = gradient.shape();
  const auto rest = [](const std::vector<std::int64_t>& shape) {
    return std::vector<std::int64_t>(shape.begin() + 2, shape.end());
  };
  const bool fits = given.size() == wanted.size() && text + wanted[0] <= given[0] &&
                    wanted[1] <= given[1] && rest(given) == rest(wanted);
  require(fits && (calls_by_text_ || given == wanted), ErrorCode::invalid_argument,
          "the weights at '{}' have the shape {}, expected that of its values, {}", point,
          shape_text(given), shape_text(wanted));
  const std::size_t sequence = weights.size() / static_cast<std::size_t>(given[0]);
  const std::size_t own = gradient.size() / static_cast<std::size_t>(wanted[0]);
  for (std::int64_t b = 0; b < wanted[0]; ++b) {
    const float* const from = weights.data() + static_cast<std::size_t>(text + b) * sequence;
    float* const to = gradient.data() + static_cast<std::size_t>(b) * own;
    for (std::size_t i = 0; i < own; ++i) to[i] += from[i];
  }
}

HookEditor::CallsByPoint HookEditor::calls_of(const Architecture& architecture,
                                              const std::vector<Hook>& hooks) {
  CallsByPoint calls;
  for (const Hook& hook : hooks) {
    for (const Point& point : points_named(hook.where, architecture)) {
      calls[point_name(point)].push_back(&hook);
    }
  }
  return calls;
}

const HookEditor::Calls* HookEditor::calls_at(const CallsByPoint& calls, const Point& point) {
  if (calls.empty()) return nullptr;
  const auto found = calls.find(point_name(point));
  return found == calls.end() ? nullptr : &found->second;
}

void HookEditor::call(const Calls& calls, const HookedPoint& point, Array& values) {
  const std::vector<std::int64_t> shape = values.shape();
  for (const Hook* hook : calls) {
    hook->call(point, values);
    require(values.shape() == shape, ErrorCode::invalid_argument,
            "the hook at '{}' left values of shape {}, expected {}", point.name,
            shape_text(values.shape()), shape_text(shape));
  }
}

bool HookEditor::keeps(const Point& point) const {
  if (calls_.empty() || std::ranges::find(kept_points_, point) == kept_points_.end()) return false;
  if (calls_at(calls_, point) != nullptr) return true;
  // A pattern follows from the scores that a hook left.
  return is_pattern_point(point.kind) && calls_at(calls_, scores_of(point)) != nullptr;
}

bool HookEditor::edits(const Point& point) const {
  return calls_at(calls_, point) != nullptr || keeps(point);
}

void HookEditor::keep(const std::vector<Point>& points) { kept_points_ = points; }

std::vector<Array> HookEditor::take(const Point& point) {
  std::vector<Array> all;
  const std::string name = point_name(point);
  for (auto at = kept_.lower_bound({name, 0}); at != kept_.end() && at->first.first == name; ++at) {
    all.push_back(std::move(at->second));
  }
  return all;
}

void HookEditor::begin_pass(StackSite site, const Sequences& sequences) {
  left_.clear();
  rows_.insert_or_assign(site, sequences);
}

const Sequences* HookEditor::rows_of(const Point& point) const {
  const auto found = rows_.find(has_source_rows(point) ? StackSite::encoder : point.site);
  return found == rows_.end() ? nullptr : &found->second;
}

template <class Visit>
void HookEditor::for_each_text(const Sequences* sequences, const Point& point, View<float> rows,
                               const Visit& visit) const {
  const bool is_apart = calls_by_text_ && sequences != nullptr && sequences->is_ragged();
  if (!is_apart || is_plane(point.kind)) return visit(std::int64_t{0}, rows);
  std::int64_t text = 0;
  for (const Sequence each : *sequences) {
    visit(text++, rows.slice(1, each.row_begin, each.row_end));
  }
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
  if (values.owner().use_count() == 1 && spare_.size() < max_spare) {
    spare_.push_back(std::move(values));
  }
}

void HookEditor::edit(const EditedPoint& edited, View<float> values) {
  // Planes of texts of different lengths come text by text.
  const bool is_own_plane =
      is_plane(edited.point.kind) && edited.sequences != nullptr && edited.sequences->is_ragged();
  if (is_own_plane) return edit_text(edited, edited.first_sequence, values);
  for_each_text(edited.sequences, edited.point, values,
                [&](std::int64_t text, View<float> own) { edit_text(edited, text, own); });
}

void HookEditor::edit_text(const EditedPoint& edited, std::int64_t text, View<float> values) {
  const std::string name = point_name(edited.point);
  if (const auto left = left_.find({name, text}); left != left_.end()) {
    const Array& all = left->second;
    if (all.shape() == extents(values.shape())) return copy_to(all.data(), values);
    if (edited.head >= 0) {  // a plane of those of all heads (B, H, T, S)
      const std::int64_t sequence = all.shape()[0] == 1 ? 0 : edited.first_sequence;
      const std::int64_t plane = sequence * all.shape()[1] + edited.head;
      return copy_to(all.data() + plane * values.size(), values);
    }
  }
  Array array = memory_for(values.shape());
  copy_from(values, array.data());
  if (const Calls* const calls = calls_at(calls_, edited.point)) {
    call(*calls, {.name = name, .first_position = edited.position(0, 0), .text = text}, array);
    if (notes_changes_) note_change(edited.point, values, array);
    copy_to(array.data(), values);
  }
  if (keeps(edited.point)) kept_[{name, text}] = array;
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
    case PointKind::attention_out_normalized:
    case PointKind::feed_forward_out_normalized:
    case PointKind::cross_norm_normalized:
    case PointKind::final_normalized:
    case PointKind::head_results: left_[{name, text}] = std::move(array); break;
    case PointKind::scores:
    case PointKind::pattern:
      if (remembers_planes_) {
        left_[{name, text}] = std::move(array);
        break;
      }
      [[fallthrough]];
    default: recycle(std::move(array));
  }
}

void HookEditor::note_change(const Point& point, View<const float> before, const Array& after) {
  if (is_same(before, after.data())) return;
  changed_.insert(point_name(point));
  require(
      !refuses_unseen_ || backward_sees_edit(point.kind), ErrorCode::unsupported,
      "the hook at '{}' changed values that the backward pass of training computes again: "
      "there it may only read them; q, k, v, z, neurons, inputs and outputs of branches and the "
      "stream can be changed",
      point_name(point));
}

bool HookEditor::only_adds(const Point& point) const {
  if (!changed_.contains(point_name(point))) return true;
  return gradient_is_editable(point.kind) && has_gradient_hook(point) &&
         backward_sees_edit(point.kind);
}

bool HookEditor::edits_gradient(const Point& point) const {
  if (!gradient_is_editable(point.kind)) return false;
  return has_gradient_hook(point) || (!weights_.empty() && weights_.contains(point_name(point)));
}

void HookEditor::edit_gradient(const Point& point, View<float> gradient) {
  for_each_text(rows_of(point), point, gradient, [&](std::int64_t text, View<float> own) {
    Array array = memory_for(own.shape());
    copy_from(own, array.data());
    const std::string name = point_name(point);
    if (weights_.contains(name)) add_weights(name, text, array);
    if (const Calls* const calls = calls_at(gradient_calls_, point)) {
      call(*calls, {.name = name, .text = text}, array);
    }
    copy_to(array.data(), own);
    recycle(std::move(array));
  });
}

bool HookEditor::reads_gradient(const Point& point) const {
  return !gradient_is_editable(point.kind) && calls_at(gradient_calls_, point) != nullptr;
}

void HookEditor::show_gradient(const Point& point, View<const float> gradient) {
  const View<float> rows(const_cast<float*>(gradient.data()), gradient.shape(),
                         gradient.strides());  // only read
  for_each_text(rows_of(point), point, rows, [&](std::int64_t text, View<float> own) {
    Array array = dense_copy(own);
    call(*calls_at(gradient_calls_, point), {.name = point_name(point), .text = text}, array);
    require(
        is_same(own, array.data()), ErrorCode::unsupported,
        "the backward hook at '{}' changed a gradient that is computed for reading alone: "
        "gradients can be changed at q, k, v, z, neurons, inputs and outputs of branches and the "
        "stream",
        point_name(point));
  });
}

void HookProbe::observe(const Point& point, View<const float> values) {
  if (next_ != nullptr) next_->observe(point, values);
}

void HookProbe::observe_attention_at(const Point& pattern,
                                     const kernels::AttentionInput<float>& input,
                                     View<const float> log_sum_exp, std::int64_t text) {
  next_->observe_attention_at(pattern, input, log_sum_exp, text);
}

bool HookProbe::wants_gradient(const Point& point) const {
  if (editor_ != nullptr && editor_->reads_gradient(point)) return true;
  return next_ != nullptr && next_->wants_gradient(point);
}

void HookProbe::observe_gradient(const Point& point, View<const float> values) {
  if (editor_ != nullptr && editor_->reads_gradient(point)) editor_->show_gradient(point, values);
  if (next_ != nullptr && next_->wants_gradient(point)) next_->observe_gradient(point, values);
}

}  // namespace heed
