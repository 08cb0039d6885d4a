// A moving average.
#pragma once

#include <limits>

namespace heed {

// An exponential moving average that starts at its first value.
class Average {
 public:
  explicit Average(double weight) : weight_(weight) {}
  void add(double value) {
    value_ = empty_ ? value : value_ + weight_ * (value - value_);
    empty_ = false;
  }
  double value() const { return value_; }  // not a number before the first

 private:
  double weight_;
  double value_ = std::numeric_limits<double>::quiet_NaN();
  bool empty_ = true;
};

}  // namespace heed
