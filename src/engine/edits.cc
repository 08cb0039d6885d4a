#include "engine/edits.h"

#include <algorithm>

#include "base/error.h"
#include "microscope/intervene/intervention_text.h"
#include "model/transformer.h"

namespace heed {
namespace {

// Turns an edit at one of its points into the change that a forward pass applies.
class Resolver {
 public:
  Resolver(const Transformer& gpt, const Point& point) : gpt_(gpt), point_(point) {}

  Change operator()(const SetMean& mean) const {
    return SetRow{mean_row(gpt_, point_, mean.texts)};
  }
  Change operator()(const SteerBy& steer) const {
    AddVector add{mean_of(steer.toward)};
    std::vector<float> away(add.vector.size(), 0.0F);
    if (!steer.away.empty()) away = mean_of(steer.away);
    for (std::size_t i = 0; i < away.size(); ++i) {
      add.vector[i] = steer.factor * (add.vector[i] - away[i]);
    }
    return add;
  }
  Change operator()(const TakeFromText& other) const { return taken_from(other.tokens); }
  Change operator()(const FreezePattern& frozen) const { return taken_from(frozen.tokens); }
  Change operator()(const TakeFrom& other) const {
    const TracedArray& from = other.values;
    require(from.name == point_name(point_), ErrorCode::invalid_argument,
            "values of '{}' cannot replace those of '{}'", from.name, point_name(point_));
    require(from.shape.size() == 3 || from.shape.size() == 4, ErrorCode::invalid_argument,
            "values of '{}' have {} dimensions, expected 3 or 4, with a batch of 1 first",
            from.name, from.shape.size());
    const Shape shape(from.shape.data(), static_cast<int>(from.shape.size()));
    require(shape.size() == std::ssize(from.values), ErrorCode::invalid_argument,
            "'{}' has {} values, expected the number of its shape {}", from.name,
            from.values.size(), shape.text());
    Tensor<float> values(shape);
    std::ranges::copy(from.values, values.data());
    return ReplaceWith(std::move(values));
  }
  template <class Same>
  Change operator()(const Same& change) const {
    return change;
  }

 private:
  std::vector<float> mean_of(const std::vector<std::int32_t>& text) const {
    return mean_row(gpt_, point_, std::span(&text, 1));
  }
  Change taken_from(const std::vector<std::int32_t>& tokens) const {
    return ReplaceWith(values_at(gpt_, point_, tokens));
  }

  const Transformer& gpt_;
  Point point_;
};

// The points of an edit. Frozen patterns and cut edges are those of the heads that it names.
std::vector<InterventionPoint> points_of(const StackSpecification& config, const Edit& edit) {
  std::vector<InterventionPoint> points = parse_points(config, edit.where);
  if (std::holds_alternative<FreezePattern>(edit.change)) {
    return pattern_points(std::move(points), edit.where);
  }
  if (std::holds_alternative<CutEdges>(edit.change)) {
    for (InterventionPoint& selected : points) {
      if (selected.point.kind == PointKind::mixed_values) selected.point.kind = PointKind::pattern;
    }
  }
  return points;
}

}  // namespace

std::vector<Intervention> resolve_edits(const Transformer& gpt, const std::vector<Edit>& edits) {
  std::vector<Intervention> all;
  for (const Edit& edit : edits) {
    require(edit.first_position >= 0, ErrorCode::invalid_argument,
            "first_position is {}, expected 0 or more", edit.first_position);
    for (InterventionPoint& selected : points_of(gpt.specification(), edit)) {
      Selection& where = selected.where;
      where.first_position = std::max(where.first_position, edit.first_position);
      if (where.last_position < where.first_position) continue;
      Change change = std::visit(Resolver(gpt, selected.point), edit.change);
      all.push_back({selected.point, std::move(where), std::move(change)});
    }
  }
  return all;
}

}  // namespace heed
