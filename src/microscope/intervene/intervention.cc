#include "microscope/intervene/intervention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/kernels.h"
#include "microscope/attention/visible_keys.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/transformer.h"

namespace heed {
namespace {

bool chosen(const std::vector<std::int64_t>& list, std::int64_t index) {
  return list.empty() || std::ranges::find(list, index) != list.end();
}

void check_indices(const std::vector<std::int64_t>& indices, std::int64_t count, const char* what,
                   const std::string& name) {
  for (const std::int64_t index : indices) {
    require(index >= 0 && index < count, ErrorCode::invalid_argument,
            "{} {} of {} does not exist: there are {}s 0 to {}", what, index, name, what,
            count - 1);
  }
}

// Checks that an intervention fits its point.
class Examiner {
 public:
  // `sees_all`: no mask hides keys from its queries.
  Examiner(const Architecture& architecture, const Intervention& intervention, bool sees_all)
      : architecture_(architecture),
        config_(architecture.of(intervention.point.site)),
        intervention_(intervention),
        sees_all_(sees_all),
        name_(point_name(intervention.point)) {
    require_point(architecture_, intervention_.point);
    shape_ = point_shape(config_, intervention_.point.kind);
  }

  void examine() const {
    require(intervention_.point.kind != PointKind::logits, ErrorCode::invalid_argument,
            "{} cannot be changed: change unembed.hook_in, which the logits are computed from",
            name_);
    const Selection& where = intervention_.where;
    const bool heads = shape_.has_heads || shape_.is_plane;
    require(heads || where.heads.empty(), ErrorCode::invalid_argument, "{} has no heads to select",
            name_);
    require(!heads || where.neurons.empty(), ErrorCode::invalid_argument,
            "{} has heads; it has no neurons to select", name_);
    check_indices(where.heads, shape_.heads, "head", name_);
    check_indices(where.neurons, shape_.width, "neuron", name_);
    require(where.first_position >= 0 && where.first_position <= where.last_position,
            ErrorCode::invalid_argument, "{} to {} is not a position range", where.first_position,
            where.last_position);
    std::visit([this](const auto& change) { fits(change); }, intervention_.change);
  }

 private:
  void fits(const SetZero&) const {}
  void fits(const ScaleBy& scale) const {
    require(std::isfinite(scale.factor), ErrorCode::invalid_argument,
            "{} is scaled by {}, expected a finite number", name_, scale.factor);
  }
  void fits(const AddVector& add) const {
    const bool by_head = shape_.has_heads && std::ssize(add.vector) == shape_.width * shape_.heads;
    if (!by_head) check_row(std::ssize(add.vector), shape_.width, "adds");
  }
  void fits(const SetRow& set) const {
    check_row(std::ssize(set.row), shape_.width * (shape_.has_heads ? shape_.heads : 1), "sets");
  }
  void fits(const ReplaceWith& replace) const {
    const Shape& shape = replace.values->shape();
    const int rank = shape_.has_heads || shape_.is_plane ? 4 : 3;
    bool right = shape.rank() == rank && shape[0] == 1;
    if (right && shape_.has_heads) right = shape[2] == shape_.heads && shape[3] == shape_.width;
    if (right && shape_.is_plane)
      right = shape[1] == shape_.heads && (is_cross() || shape[2] == shape[3]);
    if (right && rank == 3) right = shape[2] == shape_.width;
    require(right, ErrorCode::invalid_argument, "the values for {} have the shape {}, expected {}",
            name_, shape.text(), expected_trace());
  }
  void fits(const SetMask& mask) const {
    const bool causal = mask.kind == SetMask::Kind::causal;
    require(intervention_.point.kind == PointKind::scores, ErrorCode::invalid_argument,
            "the future is {} in scores of attention within one text, not in {}",
            causal ? "hidden" : "shown", name_);
    require(config_.is_causal() != causal, ErrorCode::invalid_argument, "{} has {}", name_,
            causal ? "a causal mask already" : "no causal mask to lift");
  }
  void fits(const CutEdges& cut) const {
    const PointKind kind = intervention_.point.kind;
    require(kind == PointKind::pattern || kind == PointKind::cross_pattern,
            ErrorCode::invalid_argument,
            "edges are cut in patterns, such as blocks.L.attn.hook_pattern, not in {}", name_);
    require(!cut.edges.empty(), ErrorCode::invalid_argument, "no edges to cut in {}", name_);
    const AttentionSpecification& attention =
        is_cross() ? *config_.block.cross_attention : config_.block.attention;
    const std::int64_t memory = is_cross() ? architecture_.encoder().context : config_.context;
    for (const CutEdges::Edge& edge : cut.edges) {
      require(edge.query >= 0 && edge.query < config_.context, ErrorCode::invalid_argument,
              "there is no edge from {} to {}: queries lie below {}, the context", edge.query,
              edge.key, config_.context);
      const VisibleKeys keys =
          sees_all_ ? VisibleKeys{0, memory}
                    : visible_keys(attention, intervention_.point.layer, edge.query, memory);
      require(keys.contains(edge.key), ErrorCode::invalid_argument,
              "there is no edge from {} to {}: the query attends to positions {} to {}", edge.query,
              edge.key, keys.begin, keys.end - 1);
    }
  }

  void check_row(std::int64_t size, std::int64_t expected, const char* what) const {
    require(!shape_.is_plane, ErrorCode::invalid_argument,
            "{} takes no vector: the length of its rows varies", name_);
    require(size == expected, ErrorCode::invalid_argument,
            "an intervention {} a vector of {} numbers at {}, expected {}", what, size, name_,
            expected);
  }
  std::string expected_trace() const {
    if (shape_.is_plane) return fmt::format("(1, {}, T, {})", shape_.heads, is_cross() ? "S" : "T");
    if (shape_.has_heads) return fmt::format("(1, T, {}, {})", shape_.heads, shape_.width);
    return fmt::format("(1, T, {})", shape_.width);
  }

  bool is_cross() const { return is_cross_point(intervention_.point.kind); }

  const Architecture& architecture_;
  const StackSpecification& config_;
  const Intervention& intervention_;
  bool sees_all_;
  std::string name_;
  PointShape shape_;
};

// One row of a point, (width) or (H, D), at one position.
class RowChanger {
 public:
  RowChanger(const Intervention& intervention, std::int64_t position, View<float> row)
      : where_(intervention.where), position_(position), row_(row) {}

  void operator()(const SetZero&) const {
    each([](float& value, auto...) { value = 0; });
  }
  void operator()(const ScaleBy& scale) const {
    each([&](float& value, auto...) { value *= scale.factor; });
  }
  void operator()(const AddVector& add) const {
    const std::int64_t width = row_.extent(row_.rank() - 1);
    const bool by_head = std::ssize(add.vector) > width;
    each([&](float& value, std::int64_t head, std::int64_t i) {
      value += add.vector[by_head ? head * width + i : i];
    });
  }
  void operator()(const SetRow& set) const {
    const std::int64_t width = row_.extent(row_.rank() - 1);
    each([&](float& value, std::int64_t head, std::int64_t i) {
      value = set.row[head * width + i];
    });
  }
  void operator()(const ReplaceWith& replace) const {
    if (position_ >= replace.values->shape()[1]) return;  // a step of a generation
    const View<const float> from = replace.values->view()[0][position_];
    each([&](float& value, std::int64_t head, std::int64_t i) {
      value = row_.rank() == 2 ? from(head, i) : from(i);
    });
  }
  void operator()(const CutEdges&) const { check(false, "edges are cut in patterns"); }
  void operator()(const SetMask&) const { check(false, "masks are set in scores"); }

 private:
  // Calls change(value, head, index) for every selected value; head is 0 at points without heads.
  template <class Change>
  void each(Change&& change) const {
    if (row_.rank() == 1) {
      for (std::int64_t i = 0; i < row_.extent(0); ++i) {
        if (chosen(where_.neurons, i)) change(row_(i), std::int64_t{0}, i);
      }
      return;
    }
    for (std::int64_t head = 0; head < row_.extent(0); ++head) {
      if (!chosen(where_.heads, head)) continue;
      for (std::int64_t i = 0; i < row_.extent(1); ++i) change(row_(head, i), head, i);
    }
  }

  const Selection& where_;
  std::int64_t position_;
  View<float> row_;
};

// One row of a head's scores or pattern, (S), of the query at `position`, which sees `keys`. Masked
// elements are unchanged, but by a change of the mask: `unmasked` has what it would show.
class PlaneRowChanger {
 public:
  PlaneRowChanger(std::int64_t head, std::int64_t position, const VisibleKeys& keys,
                  View<const float> unmasked, View<float> row)
      : head_(head), position_(position), keys_(keys), unmasked_(unmasked), row_(row) {}

  void operator()(const SetZero&) const { scale(0); }
  void operator()(const ScaleBy& by) const { scale(by.factor); }
  void operator()(const ReplaceWith& replace) const {
    const View<const float> plane = replace.values->view()[0][head_];
    if (position_ >= plane.extent(0)) return;
    const std::int64_t end = std::min(keys_.end, plane.extent(1));
    for (std::int64_t s = keys_.begin; s < end; ++s) row_(s) = plane(position_, s);
  }
  void operator()(const CutEdges& cut) const {
    double before = 0;
    double after = 0;
    for (std::int64_t s = keys_.begin; s < keys_.end; ++s) before += row_(s);
    auto edge = std::ranges::lower_bound(cut.edges, position_, {}, &CutEdges::Edge::query);
    for (; edge != cut.edges.end() && edge->query == position_; ++edge) {
      if (keys_.contains(edge->key)) row_(edge->key) = 0;
    }
    if (cut.rest == CutEdges::Rest::kept) return;
    for (std::int64_t s = keys_.begin; s < keys_.end; ++s) after += row_(s);
    if (after <= 0 || after == before) return;
    for (std::int64_t s = keys_.begin; s < keys_.end; ++s) {
      row_(s) = static_cast<float>(row_(s) * (before / after));
    }
  }
  void operator()(const SetMask& mask) const {
    const float hidden = -std::numeric_limits<float>::infinity();
    for (std::int64_t s = 0; s < row_.extent(0); ++s) {
      if (mask.kind == SetMask::Kind::none && row_(s) == hidden) row_(s) = unmasked_(s);
      if (mask.kind == SetMask::Kind::causal && s > position_) row_(s) = hidden;
    }
  }
  template <class Other>
  void operator()(const Other&) const {
    check(false, "scores and patterns take no vector");
  }

 private:
  void scale(float factor) const {
    for (std::int64_t s = keys_.begin; s < keys_.end; ++s) row_(s) *= factor;
  }

  std::int64_t head_;
  std::int64_t position_;
  VisibleKeys keys_;
  View<const float> unmasked_;
  View<float> row_;
};

// The scores (T, S) of a head that is edited, of all keys.
Tensor<float> unmasked_scores(const EditedPoint& edited, const View<float>& plane) {
  check(edited.attention != nullptr, "scores are edited with the operands they follow from");
  kernels::AttentionInput<float> input = *edited.attention;
  input.mask = kernels::Mask::full;
  input.window = input.query_offset = 0;
  Tensor<float> scores(Shape{plane.extent(2), plane.extent(3)});
  kernels::attention_scores_tile(input,
                                 {.batch = edited.attention_sequence(),
                                  .head = edited.head,
                                  .query_end = plane.extent(2),
                                  .key_end = plane.extent(3)},
                                 scores);
  return scores;
}

bool is_unmasking(const Change& change) {
  const auto* const mask = std::get_if<SetMask>(&change);
  return mask != nullptr && mask->kind == SetMask::Kind::none;
}

bool selects_position(const Selection& where, std::int64_t position) {
  return position >= where.first_position && position <= where.last_position;
}

// Whether values that replace others reach to the end of a text whose pass has `rows` positions, or
// the longest of several.
// Steps of a generation come after them.
void require_values_reach(const Intervention& intervention, const EditedPoint& edited,
                          std::int64_t rows) {
  const auto* const replace = std::get_if<ReplaceWith>(&intervention.change);
  if (replace == nullptr || edited.position(0, 0) > 0) return;
  const std::int64_t known = replace->values->shape()[edited.head >= 0 ? 2 : 1];
  const std::int64_t last = std::min(intervention.where.last_position, rows - 1);
  require(
      last < known || intervention.where.first_position > last, ErrorCode::invalid_argument,
      "{} is replaced by values of a text of {} tokens, and this text has {}: give a text of its "
      "length, or choose positions, such as @0-{}",
      point_name(intervention.point), known, rows, known - 1);
}

}  // namespace

PointShape point_shape(const StackSpecification& config, PointKind kind) {
  const AttentionSpecification& attention =
      is_cross_point(kind) ? *config.block.cross_attention : config.block.attention;
  const std::int64_t heads = attention.query_heads, shared = attention.key_value_heads;
  switch (kind) {
    case PointKind::query:
    case PointKind::rotated_query:
    case PointKind::mixed_values:
    case PointKind::cross_query:
    case PointKind::cross_mixed_values:
      return {.width = attention.head_size, .has_heads = true, .heads = heads};
    case PointKind::key:
    case PointKind::rotated_key:
    case PointKind::value:
    case PointKind::cross_key:
    case PointKind::cross_value:
      return {.width = attention.head_size, .has_heads = true, .heads = shared};
    case PointKind::attention_in:
    case PointKind::query_input:
    case PointKind::head_results:
      return {.width = config.channels, .has_heads = true, .heads = heads};
    case PointKind::key_input:
    case PointKind::value_input:
      return {.width = config.channels, .has_heads = true, .heads = shared};
    case PointKind::scores:
    case PointKind::pattern:
    case PointKind::cross_scores:
    case PointKind::cross_pattern: return {.is_plane = true, .heads = heads};
    case PointKind::neurons_pre:
    case PointKind::neurons_linear:
    case PointKind::neurons_post: return {.width = config.feed_forward()};
    case PointKind::norm_1_scale:
    case PointKind::norm_2_scale:
    case PointKind::attention_out_scale:
    case PointKind::feed_forward_out_scale:
    case PointKind::cross_norm_scale:
    case PointKind::final_scale: return {.width = 1};
    case PointKind::logits: return {.width = config.vocabulary_size};
    default: return {.width = config.channels};
  }
}

Interventions::Interventions(const StackSpecification& config,
                             std::vector<Intervention> interventions)
    : Interventions(Architecture{.stacks = {config}}, std::move(interventions)) {}

Interventions::Interventions(const Architecture& architecture,
                             std::vector<Intervention> interventions)
    : architecture_(architecture), interventions_(std::move(interventions)) {
  for (Intervention& intervention : interventions_) {
    const bool sees_all = std::ranges::any_of(interventions_, [&](const Intervention& each) {
      return is_unmasking(each.change) && each.point.layer == intervention.point.layer;
    });
    Examiner(architecture_, intervention, sees_all).examine();
    if (auto* const cut = std::get_if<CutEdges>(&intervention.change)) {
      std::ranges::sort(cut->edges, {}, &CutEdges::Edge::query);  // looked up query by query
    }
  }
}

bool Interventions::edits(const Point& point) const {
  return std::ranges::any_of(interventions_,
                             [&](const Intervention& each) { return each.point == point; });
}

bool Interventions::edits_head(const Point& point, std::int64_t head) const {
  return std::ranges::any_of(interventions_, [&](const Intervention& each) {
    return each.point == point && chosen(each.where.heads, head);
  });
}

// A norm divides by its scale: adding to the scale is not an addition downstream.
bool Interventions::only_adds(const Point& point) const {
  return point_shape(stack_of(point), point.kind).width != 1 &&
         std::ranges::all_of(interventions_, [&](const Intervention& each) {
           return each.point != point || std::holds_alternative<AddVector>(each.change);
         });
}

bool Interventions::lifts_mask(const Point& plane, std::int64_t head, std::int64_t position) const {
  const Point scores{PointKind::scores, plane.layer, plane.site};
  return !is_cross_point(plane.kind) &&
         std::ranges::any_of(interventions_, [&](const Intervention& each) {
           return each.point == scores && is_unmasking(each.change) &&
                  chosen(each.where.heads, head) && selects_position(each.where, position);
         });
}

void Interventions::edit(const EditedPoint& edited, View<float> values) {
  const bool is_plane = edited.head >= 0;
  const BlockSpecification& block = stack_of(edited.point).block;
  const AttentionSpecification& attention =
      is_cross_point(edited.point.kind) ? *block.cross_attention : block.attention;
  for (const Intervention& intervention : interventions_) {
    if (intervention.point != edited.point) continue;
    const Selection& where = intervention.where;
    if (is_plane && !chosen(where.heads, edited.head)) continue;
    const std::int64_t rows = values.extent(is_plane ? 2 : 1);
    require_values_reach(intervention, edited, edited.longest(rows));
    Tensor<float> unmasked;
    if (is_unmasking(intervention.change)) unmasked = unmasked_scores(edited, values);
    for (std::int64_t b = 0; b < values.extent(0); ++b) {
      for (std::int64_t t = 0; t < rows; ++t) {
        const std::int64_t position = edited.position(b, t);
        if (!selects_position(where, position)) continue;
        if (is_plane) {
          const VisibleKeys keys =
              lifts_mask(edited.point, edited.head, position)
                  ? VisibleKeys{0, values.extent(3)}
                  : visible_keys(attention, edited.point.layer, position, values.extent(3));
          const View<const float> row =
              unmasked.size() > 0 ? unmasked.view()[t] : View<const float>{};
          std::visit(PlaneRowChanger(edited.head, position, keys, row, values[b][0][t]),
                     intervention.change);
        } else {
          std::visit(RowChanger(intervention, position, values[b][t]), intervention.change);
        }
      }
    }
  }
}

void RowMean::add(View<const float> values) {
  const std::int64_t rows = values.extent(0) * values.extent(1);
  std::vector<float> row(static_cast<std::size_t>(values.size() / rows));
  sums_.resize(row.size(), 0.0);
  for (std::int64_t b = 0; b < values.extent(0); ++b) {
    for (std::int64_t t = 0; t < values.extent(1); ++t) {
      copy_elements(values[b][t], row.data());
      for (std::size_t i = 0; i < row.size(); ++i) sums_[i] += row[i];
    }
  }
  rows_ += rows;
}

std::vector<float> RowMean::mean() const {
  std::vector<float> mean(sums_.size());
  std::ranges::transform(sums_, mean.begin(), [&](double sum) {
    return static_cast<float>(sum / static_cast<double>(rows_));
  });
  return mean;
}

void require_mean(const Architecture& architecture, const Point& point) {
  require(!point_shape(architecture.of(point.site), point.kind).is_plane,
          ErrorCode::invalid_argument, "rows of {} differ in length, so they have no mean",
          point_name(point));
}

namespace {

class MeanProbe final : public Probe {
 public:
  explicit MeanProbe(const Point& point) : point_(point) {}

  bool wants(const Point& point) const override { return point == point_; }
  void observe(const Point&, View<const float> values) override { mean_.add(values); }
  std::vector<float> mean() const { return mean_.mean(); }

 private:
  Point point_;
  RowMean mean_;
};

}  // namespace

std::vector<float> mean_row(const Transformer& model, const Point& point,
                            std::span<const Texts> texts) {
  require_mean(model.architecture(), point);
  require_point(model.architecture(), point);
  require(!texts.empty(), ErrorCode::invalid_argument, "a mean needs at least one text");
  MeanProbe probe(point);
  observe_passes(model, texts, probe);
  return probe.mean();
}

Tensor<float> values_at(const Transformer& model, const Point& point, const Texts& texts) {
  require_point(model.architecture(), point);
  Capture capture(std::vector<Point>{point});
  observe_pass(model, texts, capture);
  return capture.take(point);
}

}  // namespace heed
