// Comparing what a pass computed with what it should have.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/probe.h"
#include "tensor/tensor.h"

namespace heed::testing {

// ‖actual - expected‖ / ‖expected‖, where −∞ must meet −∞; infinite when sizes differ.
inline double relative_error(std::span<const float> actual, std::span<const float> expected) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (actual.size() != expected.size()) return infinity;
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isinf(expected[i]) && actual[i] == expected[i]) continue;
    difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

inline bool same_bits(const Tensor<float>& a, const Tensor<float>& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.span().size_bytes()) == 0;
}

// The elements of a view of any strides, in the order of its indices.
inline void append_elements(View<const float> view, std::vector<float>& out) {
  if (view.rank() == 1) {
    for (std::int64_t i = 0; i < view.extent(0); ++i) out.push_back(view(i));
    return;
  }
  for (std::int64_t i = 0; i < view.extent(0); ++i) append_elements(view[i], out);
}

// Keeps a copy of everything that it is shown; gradients only when it was made to.
class RecordingProbe : public Probe {
 public:
  struct Record {
    Shape shape;
    std::vector<float> values;

    bool operator==(const Record&) const = default;
  };

  bool wants(const Point&) const override { return true; }
  void observe(const Point& point, View<const float> values) override {
    order.push_back(point);
    record(records[point_name(point)], values);
  }
  bool wants_gradient(const Point&) const override { return gradients_wanted; }
  void observe_gradient(const Point& point, View<const float> values) override {
    record(gradients[point_name(point)], values);
  }

  bool gradients_wanted = false;
  std::map<std::string, Record> records;    // the last of each name
  std::map<std::string, Record> gradients;  // likewise
  std::vector<Point> order;

 private:
  static void record(Record& record, View<const float> values) {
    record.shape = values.shape();
    record.values.clear();
    append_elements(values, record.values);
  }
};

}  // namespace heed::testing
