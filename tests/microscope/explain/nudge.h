// For finite differences: changes one number of a pass.
#pragma once

#include "model/editor.h"

namespace heed::testing {

// Adds a number to one element of one point; of head 2, where it has heads.
class Nudge final : public Editor {
 public:
  Nudge(Point point, std::int64_t position, std::int64_t channel, float by)
      : point_(point), position_(position), channel_(channel), by_(by) {}

  bool edits(const Point& point) const override { return point == point_; }
  void edit(const EditedPoint&, View<float> values) override {
    (values.rank() == 4 ? values[0][position_][2] : values[0][position_])(channel_) += by_;
  }

 private:
  Point point_;
  std::int64_t position_;
  std::int64_t channel_;
  float by_;
};

}  // namespace heed::testing
