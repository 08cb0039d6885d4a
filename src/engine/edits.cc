#include "engine/edits.h"

#include <algorithm>

#include "base/error.h"
#include "microscope/intervene/intervention_text.h"
#include "model/gpt.h"

namespace heed {
namespace {

// One edit at one of its places: the change as a pass makes it.
class Resolver {
 public:
  Resolver(const Gpt& gpt, const Site& site) : gpt_(gpt), site_(site) {}

  Change operator()(const SetMean& mean) const { return SetRow{mean_row(gpt_, site_, mean.texts)}; }
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
    require(from.name == site_name(site_), ErrorCode::invalid_argument,
            "values of '{}' cannot take the place of '{}'", from.name, site_name(site_));
    require(from.shape.size() == 3 || from.shape.size() == 4, ErrorCode::invalid_argument,
            "values of '{}' have {} dimensions, expected 3 or 4: a batch of 1 in front", from.name,
            from.shape.size());
    const Shape shape(from.shape.data(), static_cast<int>(from.shape.size()));
    require(shape.size() == std::ssize(from.values), ErrorCode::invalid_argument,
            "'{}' has {} values, which do not fill its shape {}", from.name, from.values.size(),
            shape.text());
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
    return mean_row(gpt_, site_, std::span(&text, 1));
  }
  Change taken_from(const std::vector<std::int32_t>& tokens) const {
    return ReplaceWith(values_at(gpt_, site_, tokens));
  }

  const Gpt& gpt_;
  Site site_;
};

// Edges and patterns are those of a head, or of a block, that is named without its pattern.
Site site_of(const InterventionPoint& place, const Edit& edit) {
  const bool cuts = std::holds_alternative<CutEdges>(edit.change);
  if (cuts && place.site.point == Point::mixed_values) return {Point::pattern, place.site.layer};
  if (!std::holds_alternative<FreezePattern>(edit.change)) return place.site;
  require(place.site.layer >= 0 && place.where.neurons.empty(), ErrorCode::invalid_argument,
          "'{}' has no pattern to freeze: name a head or a block, such as L2H3 or L2", edit.where);
  return {Point::pattern, place.site.layer};
}

}  // namespace

std::vector<Intervention> resolve_edits(const Gpt& gpt, const std::vector<Edit>& edits) {
  std::vector<Intervention> all;
  for (const Edit& edit : edits) {
    const auto first = all.size();
    require(edit.first_position >= 0, ErrorCode::invalid_argument, "{} is no position",
            edit.first_position);
    for (InterventionPoint& place : parse_points(gpt.config(), edit.where)) {
      Selection& where = place.where;
      where.first_position = std::max(where.first_position, edit.first_position);
      if (where.last_position < where.first_position) continue;
      const Site site = site_of(place, edit);
      // Both halves of a block lead to the same pattern.
      const bool again = std::holds_alternative<FreezePattern>(edit.change) && all.size() > first &&
                         all.back().site == site;
      if (again) continue;
      all.push_back({site, std::move(where), std::visit(Resolver(gpt, site), edit.change)});
    }
  }
  return all;
}

}  // namespace heed
