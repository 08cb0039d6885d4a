#include "microscope/traces/capture.h"

#include <algorithm>

#include "base/error.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {

float* copy_elements(View<const float> from, float* to) {
  if (from.rank() == 0) {
    *to = *from.data();
    return to + 1;
  }
  if (from.rank() == 1 && (from.stride(0) == 1 || from.extent(0) == 1)) {
    return std::copy_n(from.data(), from.extent(0), to);
  }
  for (std::int64_t i = 0; i < from.extent(0); ++i) to = copy_elements(from[i], to);
  return to;
}

bool matches_glob(std::string_view name, std::string_view pattern) {
  // The position of the last star, and the end of what it matches. Backtracking to the last star
  // suffices: it can match whatever an earlier star could.
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  std::size_t at = 0;
  std::size_t in_name = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = in_name;
    } else if (at < pattern.size() && pattern[at] == name[in_name]) {
      ++at;
      ++in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

Capture::Capture(const std::vector<std::string>& patterns, const StackSpecification& stack) {
  const std::vector<Point> every = all_points(stack);
  for (const std::string& pattern : patterns) {
    const std::size_t before = points_.size();
    for (const Point& point : every) {
      if (!matches_glob(point_name(point), pattern)) continue;
      points_.push_back(point);
    }
    require(points_.size() > before, ErrorCode::invalid_argument,
            "no probe point of a model with {} layers is called '{}'; names look like "
            "blocks.0.attn.hook_pattern, and * stands for any part",
            stack.layers, pattern);
  }
}

bool Capture::wants(const Point& point) const {
  return std::find(points_.begin(), points_.end(), point) != points_.end();
}

void Capture::observe(const Point& point, View<const float> values) {
  if (!wants(point)) return;
  Tensor<float> kept(values.shape());
  copy_elements(values, kept.data());
  values_.insert_or_assign(point_name(point), std::move(kept));
}

const Tensor<float>& Capture::at(const Point& point) const {
  const std::string name = point_name(point);
  const auto found = values_.find(name);
  require(found != values_.end(), ErrorCode::not_found, "'{}' was not captured", name);
  return found->second;
}

Tensor<float> Capture::take(const Point& point) {
  at(point);
  return std::move(values_.extract(point_name(point)).mapped());
}

Capture trace(const Transformer& model, std::span<const std::int32_t> tokens,
              std::vector<Point> points) {
  Capture capture(std::move(points));
  observe_pass(model, tokens, capture);
  return capture;
}

Capture trace_patterns(const Transformer& model, std::span<const std::int32_t> tokens) {
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < model.specification().layers; ++layer) {
    points.push_back({PointKind::pattern, layer});
  }
  return trace(model, tokens, std::move(points));
}

Tensor<float> vectors_at(const Capture& capture, std::int64_t position) {
  const std::vector<Point>& points = capture.points();
  const std::int64_t channels = capture.at(points.front()).view().extent(2);
  Tensor<float> vectors(Shape{std::ssize(points), channels});
  for (std::int64_t row = 0; row < std::ssize(points); ++row) {
    const Tensor<float>& values = capture.at(points[static_cast<std::size_t>(row)]);
    std::ranges::copy(values.view()[0][position].span(), vectors.view()[row].span().begin());
  }
  return vectors;
}

}  // namespace heed
