#include "engine/edits.h"

#include <algorithm>

#include "base/error.h"
#include "engine/facade.h"
#include "engine/views/token_json.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {
namespace {

// Turns an edit at one of its points into the change that a forward pass applies.
class Resolver {
 public:
  Resolver(const Transformer& model, const Point& point, const WordsOf& words)
      : model_(model), point_(point), words_(words) {}

  Change operator()(const SetMean& mean) const {
    return SetRow{mean_row(model_, point_, mean.texts)};
  }
  Change operator()(const SteerBy& steer) const {
    AddVector add{mean_of(steer.toward)};
    std::vector<float> away(add.vector.size(), 0.0F);
    if (!steer.away.target.empty()) away = mean_of(steer.away);
    for (std::size_t i = 0; i < away.size(); ++i) {
      add.vector[i] = steer.factor * (add.vector[i] - away[i]);
    }
    return add;
  }
  Change operator()(const TakeFromText& other) const { return taken_from(other.text); }
  Change operator()(const FreezePattern& frozen) const { return taken_from(frozen.text); }
  Change operator()(const CutWords& cut) const {
    require(words_ != nullptr, ErrorCode::unsupported, "edges between words need a tokenizer");
    return CutEdges{edges_between_words(model_.architecture(), site_of_pattern(point_), cut.text,
                                        words_, cut.query, cut.key),
                    cut.rest};
  }
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
  std::vector<float> mean_of(const Texts& text) const {
    return mean_row(model_, point_, std::span(&text, 1));
  }
  Change taken_from(const Texts& text) const {
    return ReplaceWith(values_at(model_, point_, text));
  }

  const Transformer& model_;
  Point point_;
  const WordsOf& words_;
};

// The points of an edit. Of changes of patterns, those of the heads that it names.
std::vector<InterventionPoint> points_of(const Architecture& architecture, const Edit& edit) {
  const bool of_scores = std::holds_alternative<SetMask>(edit.change);
  const bool of_patterns = of_scores || std::holds_alternative<FreezePattern>(edit.change) ||
                           std::holds_alternative<CutEdges>(edit.change) ||
                           std::holds_alternative<CutWords>(edit.change);
  if (!of_patterns) return parse_points(architecture, edit.where);
  std::vector<InterventionPoint> points = pattern_points(architecture, edit.where);
  for (InterventionPoint& each : points) {
    if (of_scores && !is_cross_point(each.point.kind)) each.point.kind = PointKind::scores;
  }
  return points;
}

}  // namespace

std::vector<Intervention> resolve_edits(const Transformer& model, const std::vector<Edit>& edits,
                                        const WordsOf& words) {
  std::vector<Intervention> all;
  for (const Edit& edit : edits) {
    require(edit.first_position >= 0, ErrorCode::invalid_argument,
            "first_position is {}, expected 0 or more", edit.first_position);
    for (InterventionPoint& selected : points_of(model.architecture(), edit)) {
      Selection& where = selected.where;
      if (!has_source_rows(selected.point)) {
        where.first_position = std::max(where.first_position, edit.first_position);
      }
      if (where.last_position < where.first_position) continue;
      Change change = std::visit(Resolver(model, selected.point, words), edit.change);
      all.push_back({selected.point, std::move(where), std::move(change)});
    }
  }
  return all;
}

WordsOf words_of(const LoadedModel& model) {
  return [&model](PairSide side, std::span<const std::int32_t> tokens) {
    return text_units(model, tokens, side);
  };
}

EditedModel::EditedModel(const Model& model, const std::vector<Edit>& edits)
    : Model([&] {
        const LoadedModel& loaded = ModelAccess::loaded(model);
        return ModelAccess::with_editor(
            model, std::make_shared<Interventions>(
                       loaded.transformer.architecture(),
                       resolve_edits(loaded.transformer, edits, words_of(loaded))));
      }()) {}

}  // namespace heed
