#include "microscope/traces/pair_trace.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

std::vector<std::int64_t> every_index(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

// The wanted indices below `count`, ascending and distinct; none wanted: all.
std::vector<std::int64_t> selected_indices(const std::vector<std::int64_t>& wanted,
                                           std::int64_t count, std::string_view what) {
  if (wanted.empty()) return every_index(count);
  std::vector<std::int64_t> indices;
  const bool from_the_end = what.ends_with("position");
  for (const std::int64_t index : wanted) {
    require(index < count && index >= (from_the_end ? -count : 0), ErrorCode::invalid_argument,
            "{} {} does not exist: there are 0 to {}", what, index, count - 1);
    indices.push_back(index < 0 ? index + count : index);
  }
  std::ranges::sort(indices);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

// Which part of a point is kept: of planes (1, H, T, S) heads and queries, of others (1, T, …)
// positions and, where it has them, heads.
struct KeptPart {
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> heads;  // empty: the point has none
  bool is_plane = false;
};

KeptPart kept_part(const PairPass& pass, const PairTraceRequest& request, const Point& point) {
  const StackSpecification& stack = pass.architecture().of(point.site);
  const PointShape shape = point_shape(stack, point.kind);
  KeptPart part{.positions = {}, .heads = {}, .is_plane = shape.is_plane};
  part.positions =
      has_source_rows(point)
          ? selected_indices(request.source_positions, pass.sources(), "source position")
          : selected_indices(request.points.positions, pass.targets(), "target position");
  if (!shape.has_heads && !shape.is_plane) return part;
  const std::int64_t query_heads =
      is_cross_point(point.kind) ? stack.block.cross_attention->query_heads : stack.heads();
  part.heads = selected_indices(request.points.heads, query_heads, "head");
  for (std::int64_t& head : part.heads) head /= query_heads / shape.heads;
  part.heads.erase(std::unique(part.heads.begin(), part.heads.end()), part.heads.end());
  return part;
}

TracedArray cut_out(const Point& point, const Tensor<float>& values, const KeptPart& part) {
  const Shape& shape = values.shape();
  const std::int64_t width = shape[shape.rank() - 1];
  const std::int64_t heads = std::ssize(part.heads), positions = std::ssize(part.positions);
  TracedArray array{.name = point_name(point), .shape = {}, .values = {}};
  std::vector<float> kept;
  const auto add = [&](const float* row) { kept.insert(kept.end(), row, row + width); };
  if (part.is_plane) {
    array.shape = {1, heads, positions, width};
    for (const std::int64_t head : part.heads) {
      for (const std::int64_t t : part.positions) add(&values.view()(0, head, t, 0));
    }
  } else if (heads > 0) {
    array.shape = {1, positions, heads, width};
    for (const std::int64_t t : part.positions) {
      for (const std::int64_t head : part.heads) add(&values.view()(0, t, head, 0));
    }
  } else {
    array.shape = {1, positions, width};
    for (const std::int64_t t : part.positions) add(&values.view()(0, t, 0));
  }
  array.values = std::move(kept);
  return array;
}

std::int64_t whole_numbers(const PairPass& pass, const Point& point) {
  const PointShape shape = point_shape(pass.architecture().of(point.site), point.kind);
  const std::int64_t rows = has_source_rows(point) ? pass.sources() : pass.targets();
  if (!shape.is_plane) return rows * shape.width * std::max<std::int64_t>(shape.heads, 1);
  const bool is_decoder = point.site == StackSite::decoder && !is_cross_point(point.kind);
  return rows * shape.heads * (is_decoder ? pass.targets() : pass.sources());
}

std::vector<Point> wanted_points(const PairPass& pass, const PairTraceRequest& request) {
  const Architecture& architecture = pass.architecture();
  std::vector<Point> wanted;
  for (const std::string& name : request.points.points) {
    require(!name.ends_with(gradient_suffix), ErrorCode::unsupported,
            "'{}': gradients of encoder-decoders are not exported", name.substr(0, 80));
    const std::vector<Point> named = points_named(name, architecture);
    wanted.insert(wanted.end(), named.begin(), named.end());
  }
  const std::int64_t layers =
      std::max(architecture.encoder().layers, architecture.decoder().layers);
  const std::vector<std::int64_t> in_layers =
      selected_indices(request.points.layers, layers, "layer");
  std::vector<Point> points;
  for (const Point& point : all_points(architecture)) {
    if (point.layer >= 0 && !std::ranges::binary_search(in_layers, point.layer)) continue;
    if (std::ranges::find(wanted, point) != wanted.end()) points.push_back(point);
  }
  require(!points.empty(), ErrorCode::invalid_argument,
          "the request selects no point: its points are not in its layers");
  return points;
}

}  // namespace

Trace trace_pair(const PairPass& pass, const PairTraceRequest& request) {
  const std::vector<Point> points = wanted_points(pass, request);
  std::int64_t needed = 0;
  for (const Point& point : points) {
    needed += 2 * whole_numbers(pass, point) * static_cast<std::int64_t>(sizeof(float));
  }
  require(needed <= request.points.budget, ErrorCode::invalid_argument,
          "this trace needs {} bytes, more than its budget of {}: ask for fewer points or layers, "
          "or allow more",
          needed, request.points.budget);
  std::vector<KeptPart> parts;  // errors before the work
  for (const Point& point : points) parts.push_back(kept_part(pass, request, point));
  Capture capture(points);
  pass.replay(capture);
  Trace trace;
  for (std::size_t i = 0; i < points.size(); ++i) {
    trace.arrays.push_back(cut_out(points[i], capture.take(points[i]), parts[i]));
  }
  trace.tokens = pass.tokens().target;
  return trace;
}

}  // namespace heed
