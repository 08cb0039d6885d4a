#include "server/explorer/recorded_values.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "microscope/traces/capture.h"

namespace heed::server {
namespace {

Tensor<float> copy_of(View<const float> values) {
  Tensor<float> copy(values.shape());
  copy_elements(values, copy.data());
  return copy;
}

std::vector<float> mean_of(View<const float> values) {
  RowMean mean;
  mean.add(values);
  return mean.mean();
}

// Rows of values (1, T, …) at the positions of a changed text; what precedes them is not read.
Tensor<float> rows_of(View<const float> values, const RecordedValues::Rows& rows) {
  const std::int64_t count = rows.last - rows.first + 1;
  std::array<std::int64_t, Shape::max_rank> extents{};
  for (int i = 0; i < values.rank(); ++i) extents[i] = values.extent(i);
  extents[1] = rows.last + 1;
  Tensor<float> placed(Shape(extents.data(), values.rank()));
  const std::int64_t row_size = placed.size() / (rows.last + 1);
  copy_elements(values.slice(1, rows.from, rows.from + count),
                placed.data() + rows.first * row_size);
  return placed;
}

}  // namespace

// Sets the changes that one pass is asked for.
class RecordedValues::Filler final : public Probe {
 public:
  Filler(const WantedPoints& points, std::vector<Intervention>& interventions, StopFlag stop)
      : points_(points), interventions_(interventions), stop_(stop) {}

  bool wants(const Point& point) const override { return points_.contains(key_of(point)); }

  void observe(const Point& point, View<const float> values) override {
    require(!stop_requested(stop_), ErrorCode::interrupted, "stopped before the values were taken");
    const auto found = points_.find(key_of(point));
    if (found == points_.end()) return;
    std::optional<Change> all;  // each made once
    std::vector<float> mean;
    for (const Wanted& each : found->second.wanted) {
      Change& change = interventions_[each.intervention].change;
      if (const auto* const rows = std::get_if<Rows>(&each.form)) {
        change = ReplaceWith(rows_of(values, *rows));
        continue;
      }
      if (std::holds_alternative<All>(each.form)) {
        if (!all) all = ReplaceWith(copy_of(values));
        change = *all;
        continue;
      }
      if (mean.empty()) mean = mean_of(values);
      if (const auto* const added = std::get_if<AddedMean>(&each.form)) {
        std::vector<float>& vector = std::get<AddVector>(change).vector;
        for (std::size_t i = 0; i < mean.size(); ++i) vector[i] += added->factor * mean[i];
      } else {
        change = SetRow{mean};
      }
    }
    filled_.insert(found->first);
  }

  void require_all() const {
    for (const auto& [key, each] : points_) {
      require(filled_.contains(key), ErrorCode::not_found, "the other text has no values of {}",
              point_name(each.point));
    }
  }

 private:
  const WantedPoints& points_;
  std::vector<Intervention>& interventions_;
  StopFlag stop_;
  std::set<PointKey> filled_;
};

bool RecordedValues::want(const std::string& id, const Replay& replay, const Point& point,
                          std::size_t intervention, const Form& form) {
  auto found = std::ranges::find(passes_, id, &Pass::id);
  if (found == passes_.end()) found = passes_.insert(found, {.id = id, .replay = replay});
  WantedPoint& at = found->points[key_of(point)];
  at.point = point;
  at.wanted.push_back({intervention, form});
  return !std::holds_alternative<All>(form) || !std::exchange(at.is_shared, true);
}

void RecordedValues::fill(std::vector<Intervention>& interventions, StopFlag stop) const {
  for (const Pass& pass : passes_) {
    Filler filler(pass.points, interventions, stop);
    pass.replay(filler);
    filler.require_all();
  }
}

}  // namespace heed::server
