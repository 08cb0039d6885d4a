#include "microscope/traces/activation_trace.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

// "1.25 GiB", "980.0 MiB", "1344 bytes".
std::string size_text(std::int64_t bytes) {
  constexpr double mebibyte = 1024.0 * 1024.0;
  const auto size = static_cast<double>(bytes);
  if (size >= 1024 * mebibyte) return fmt::format("{:.2f} GiB", size / mebibyte / 1024);
  return size >= mebibyte ? fmt::format("{:.1f} MiB", size / mebibyte)
                          : fmt::format("{} bytes", bytes);
}

// The requested indices below `count`, ascending and distinct; an empty request means all.
std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& wanted, std::int64_t count,
                                 std::string_view what) {
  std::vector<std::int64_t> indices = wanted;
  if (indices.empty()) {
    indices.resize(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), 0);
    return indices;
  }
  const bool from_the_end = what == "position";
  for (std::int64_t& index : indices) {
    require(index < count && index >= (from_the_end ? -count : 0), ErrorCode::invalid_argument,
            "{} {} does not exist: there are {}s 0 to {}{}", what, index, what, count - 1,
            from_the_end ? ", or from the end from -1 on" : "");
    if (index < 0) index += count;
  }
  std::ranges::sort(indices);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

bool is_gradient(std::string_view name) { return name.ends_with(gradient_suffix); }

// The points that a request names, in the order of a pass: those of gradients, or the others.
std::vector<Point> requested_points(const TraceRequest& request, const StackSpecification& config,
                                    bool gradients) {
  const std::vector<std::int64_t> layers = chosen(request.layers, config.layers, "layer");
  std::vector<Point> wanted;
  for (std::string_view name : request.points) {
    if (is_gradient(name) != gradients) continue;
    if (gradients) name.remove_suffix(gradient_suffix.size());
    for (const Point& point : points_named(name, config)) {
      const bool in_layers = point.layer < 0 || std::ranges::binary_search(layers, point.layer);
      if (in_layers) wanted.push_back(point);
    }
  }
  std::vector<Point> ordered;
  for (const Point& point : all_points(config)) {
    if (std::ranges::find(wanted, point) != wanted.end()) ordered.push_back(point);
  }
  return ordered;
}

// Bytes of the values (B positions of them) that are computed for a probe of a point alone.
std::int64_t temporary_bytes(const StackSpecification& config, PointKind kind, std::int64_t batch,
                             std::int64_t positions) {
  const PointShape shape = point_shape(config, kind);
  std::int64_t width = 0;
  if (shape.is_plane) width = shape.heads * positions;
  if (shape.has_heads && shape.width == config.channels) width = shape.heads * config.channels;
  if (kind == PointKind::logits) width = config.vocabulary_size;
  return batch * positions * width * static_cast<std::int64_t>(sizeof(float));
}

// Leaves the first `rows` rows of each sequence, or of each plane, whose memory then ends at
// `seen`.
void cut(TracedArray& array, bool of_planes, std::int64_t rows, std::int64_t seen) {
  const std::ptrdiff_t dimension = of_planes ? 2 : 1;
  const auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, std::int64_t{1}, std::multiplies{});
  };
  std::vector<std::int64_t>& shape = array.shape;
  const std::int64_t outer = product(shape.begin(), shape.begin() + dimension);
  const std::int64_t inner = product(shape.begin() + dimension + 1, shape.end());
  const std::int64_t width = of_planes ? seen : inner;
  std::vector<float> kept;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = array.values.data() + (o * shape[dimension] + row) * inner;
      kept.insert(kept.end(), from, from + width);
    }
  }
  shape[dimension] = rows;
  if (of_planes) shape.back() = seen;
  array.values = std::move(kept);
}

}  // namespace

ActivationTrace::ActivationTrace(const StackSpecification& config, const TraceRequest& request,
                                 std::int64_t batch, std::int64_t positions,
                                 std::int64_t more_bytes)
    : heads_(chosen(request.heads, config.heads(), "head")),
      positions_(chosen(request.positions, positions, "position")),
      batch_(batch),
      all_positions_(positions),
      config_(config) {
  for (const Point& point : requested_points(request, config, false)) {
    activations_.push_back(make(point, false));
  }
  for (const Point& point : requested_points(request, config, true)) {
    gradients_.push_back(make(point, true));
  }
  require(!activations_.empty() || !gradients_.empty(), ErrorCode::invalid_argument,
          "the request selects no point: its points are not in its layers");

  // Values that the fast path does not have are computed whole, one point at a time, before the
  // wanted part is copied.
  std::int64_t needed = more_bytes;
  std::int64_t largest = 0;
  for (const std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (const Kept& kept : *all) {
      needed += elements(kept) * static_cast<std::int64_t>(sizeof(float));
      largest = std::max(largest, temporary_bytes(config, kept.point.kind, batch, positions));
    }
  }
  needed += largest;
  require(needed <= request.budget, ErrorCode::invalid_argument,
          "this trace needs {}, more than its budget of {}: ask for fewer points, layers, heads or "
          "positions, or allow more",
          size_text(needed), size_text(request.budget));
  for (std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (Kept& kept : *all) {
      const bool masked = kept.point.kind == PointKind::scores && all == &activations_;
      kept.array.values.assign(static_cast<std::size_t>(elements(kept)),
                               masked ? -std::numeric_limits<float>::infinity() : 0.0F);
    }
  }
}

ActivationTrace::Kept ActivationTrace::make(const Point& point, bool gradient) const {
  const PointShape shape = point_shape(config_, point.kind);
  Kept kept{.point = point,
            .of_heads = shape.has_heads,
            .of_planes = shape.is_plane,
            .heads = heads_,
            .array = {.name = point_name(point)}};
  if (shape.heads > 0 && shape.heads < config_.heads()) {
    for (std::int64_t& head : kept.heads) head /= config_.heads() / shape.heads;
    kept.heads.erase(std::unique(kept.heads.begin(), kept.heads.end()), kept.heads.end());
  }
  if (gradient) kept.array.name += gradient_suffix;
  const std::int64_t heads = std::ssize(kept.heads), positions = std::ssize(positions_);
  if (kept.of_planes) {
    kept.array.shape = {batch_, heads, positions, all_positions_};
  } else if (kept.of_heads) {
    kept.array.shape = {batch_, positions, heads, shape.width};
  } else {
    kept.array.shape = {batch_, positions, shape.width};
  }
  return kept;
}

std::int64_t ActivationTrace::elements(const Kept& kept) const {
  return std::accumulate(kept.array.shape.begin(), kept.array.shape.end(), std::int64_t{1},
                         std::multiplies{});
}

ActivationTrace::Kept* ActivationTrace::find(std::vector<Kept>& kept, const Point& point) {
  const auto found = std::ranges::find(kept, point, &Kept::point);
  return found == kept.end() ? nullptr : &*found;
}

bool ActivationTrace::wants(const Point& point) const {
  return std::ranges::find(activations_, point, &Kept::point) != activations_.end();
}

bool ActivationTrace::wants_gradient(const Point& point) const {
  return std::ranges::find(gradients_, point, &Kept::point) != gradients_.end();
}

void ActivationTrace::observe(const Point& point, View<const float> values) {
  if (Kept* kept = find(activations_, point)) keep(*kept, values);
}

void ActivationTrace::observe_gradient(const Point& point, View<const float> values) {
  if (Kept* kept = find(gradients_, point)) keep(*kept, values);
}

void ActivationTrace::keep(Kept& kept, View<const float> values) const {
  const std::int64_t added = values.extent(kept.of_planes ? 2 : 1);
  require(values.extent(0) == batch_ && kept.seen + added <= all_positions_,
          ErrorCode::invalid_argument,
          "{} positions of {} sequences after {} are more than the {} of {} that the trace is for",
          added, values.extent(0), kept.seen, all_positions_, batch_);
  if (kept.of_planes) {
    keep_planes(kept, values);
  } else {
    const std::int64_t width = kept.array.shape.back();
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (std::int64_t row = 0; row < std::ssize(positions_); ++row) {
        const std::int64_t t = positions_[static_cast<std::size_t>(row)] - kept.seen;
        if (t < 0 || t >= added) continue;
        const std::int64_t heads = kept.of_heads ? std::ssize(kept.heads) : 1;
        float* to = kept.array.values.data() + (b * std::ssize(positions_) + row) * heads * width;
        for (std::int64_t head = 0; head < heads; ++head, to += width) {
          const float* from = kept.of_heads
                                  ? &values(b, t, kept.heads[static_cast<std::size_t>(head)], 0)
                                  : &values(b, t, 0);
          std::copy_n(from, width, to);
        }
      }
    }
  }
  kept.seen += added;
}

// Rows of (B, H, T, S); S grows during a generation.
void ActivationTrace::keep_planes(Kept& kept, View<const float> values) const {
  const std::int64_t added = values.extent(2);
  float* to = kept.array.values.data();
  for (std::int64_t b = 0; b < batch_; ++b) {
    for (const std::int64_t head : heads_) {
      for (const std::int64_t position : positions_) {
        const std::int64_t t = position - kept.seen;
        if (t >= 0 && t < added) std::copy_n(&values(b, head, t, 0), values.extent(3), to);
        to += all_positions_;
      }
    }
  }
}

Trace ActivationTrace::take() {
  Trace trace;
  for (std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (Kept& kept : *all) {
      const auto rows = std::ranges::lower_bound(positions_, kept.seen) - positions_.begin();
      if (kept.seen < all_positions_) cut(kept.array, kept.of_planes, rows, kept.seen);
      trace.arrays.push_back(std::move(kept.array));
    }
  }
  activations_.clear();
  gradients_.clear();
  return trace;
}

bool asks_for_gradients(const TraceRequest& request) {
  return std::ranges::any_of(request.points, is_gradient);
}

}  // namespace heed
