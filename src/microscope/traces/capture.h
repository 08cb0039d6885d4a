// A probe that keeps copies of selected points.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/transformer.h"
#include "tensor/tensor.h"

namespace heed {

// Copies any strided view, the last dimension fastest; returns the end of the copy.
float* copy_elements(View<const float> from, float* to);

// Whether `name` is `pattern`, where * stands for any characters: "blocks.*.attn.hook_pattern".
bool matches_glob(std::string_view name, std::string_view pattern);

class Capture final : public Probe {
 public:
  // Names of points, or globs of them. Throws Error{invalid_argument} for one that matches no point
  // of the model.
  Capture(const std::vector<std::string>& patterns, const StackSpecification& stack);
  explicit Capture(std::vector<Point> points) : points_(std::move(points)) {}

  bool wants(const Point& point) const override;
  void observe(const Point& point, View<const float> values) override;

  // The values observed last. Throws Error{not_found} if none were observed.
  const Tensor<float>& at(const Point& point) const;
  Tensor<float> take(const Point& point);  // the same, no longer kept
  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
  std::map<std::string, Tensor<float>, std::less<>> values_;  // by the point's name
};

// Runs the model on `tokens` as one sequence and captures `points`, each with B = 1. Throws
// Error{invalid_argument} for no tokens, unknown ids and more tokens than the model's context.
Capture trace(const Transformer& model, std::span<const std::int32_t> tokens,
              std::vector<Point> points);

// The patterns of all layers, each (1, H, T, T).
Capture trace_patterns(const Transformer& model, std::span<const std::int32_t> tokens);

// The vector of one position at several depths.

// (points, C), of the points (1, T, C) that were captured, in their order.
Tensor<float> vectors_at(const Capture& capture, std::int64_t position);

}  // namespace heed
