#include "microscope/traces/activation_trace.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"

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
  const bool from_the_end = what.ends_with("position");
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
std::vector<Point> requested_points(const TraceRequest& request, const Architecture& architecture,
                                    bool gradients) {
  std::int64_t max_layers = 0;
  for (const StackSpecification& stack : architecture.stacks) {
    max_layers = std::max(max_layers, stack.layers);
  }
  const std::vector<std::int64_t> layers = chosen(request.layers, max_layers, "layer");
  std::vector<Point> wanted;
  for (std::string_view name : request.points) {
    if (is_gradient(name) != gradients) continue;
    if (gradients) name.remove_suffix(gradient_suffix.size());
    for (const Point& point : points_named(name, architecture)) {
      const bool in_layers = point.layer < 0 || std::ranges::binary_search(layers, point.layer);
      if (in_layers) wanted.push_back(point);
    }
  }
  std::vector<Point> ordered;
  for (const Point& point : all_points(architecture)) {
    if (std::ranges::find(wanted, point) != wanted.end()) ordered.push_back(point);
  }
  return ordered;
}

std::int64_t query_heads(const StackSpecification& stack, PointKind kind) {
  return is_cross_point(kind) ? stack.block.cross_attention->query_heads : stack.heads();
}

// Of the site with the most of them.
std::int64_t max_query_heads(const Architecture& architecture) {
  std::int64_t heads = 0;
  for (const AttentionSite site : sites_of(architecture)) {
    heads = std::max(heads, attention_of(architecture, site).query_heads);
  }
  return heads;
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

ActivationTrace::ActivationTrace(const Architecture& architecture, const TraceRequest& request,
                                 const TracedLengths& lengths, std::int64_t more_bytes)
    : architecture_(architecture), lengths_(lengths) {
  const bool pairs = architecture_.is_encoder_decoder();
  heads_ = chosen(request.heads, max_query_heads(architecture_), "head");
  target_ = chosen(request.positions, lengths.positions, pairs ? "target position" : "position");
  require(pairs || request.source_positions.empty(), ErrorCode::invalid_argument,
          "positions of a source: a model of one stack reads one text");
  if (pairs) source_ = chosen(request.source_positions, lengths.sources, "source position");
  for (const Point& point : requested_points(request, architecture_, false)) {
    activations_.push_back(make(point));
  }
  for (const Point& point : requested_points(request, architecture_, true)) {
    gradients_.push_back(make(point));
    gradients_.back().array.name += gradient_suffix;
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
      largest = std::max(largest, temporary_bytes(kept.point));
    }
  }
  needed += largest;
  require(needed <= request.budget, ErrorCode::invalid_argument,
          "this trace needs {}, more than its budget of {}: ask for fewer points, layers, heads or "
          "positions, or allow more",
          size_text(needed), size_text(request.budget));
  for (std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (Kept& kept : *all) {
      const bool masked = is_scores_point(kept.point.kind) && all == &activations_;
      kept.array.values.assign(static_cast<std::size_t>(elements(kept)),
                               masked ? -std::numeric_limits<float>::infinity() : 0.0F);
    }
  }
}

std::int64_t ActivationTrace::rows(const Point& point) const {
  return has_source_rows(point) ? lengths_.sources : lengths_.positions;
}

std::int64_t ActivationTrace::keys(const Point& plane) const {
  return is_cross_point(plane.kind) ? lengths_.sources : rows(plane);
}

// Of the values that are computed for a probe of a point alone.
std::int64_t ActivationTrace::temporary_bytes(const Point& point) const {
  const StackSpecification& stack = architecture_.of(point.site);
  const PointShape shape = point_shape(stack, point.kind);
  std::int64_t width = 0;
  if (shape.is_plane) width = shape.heads * keys(point);
  if (shape.has_heads && shape.width == stack.channels) width = shape.heads * stack.channels;
  if (point.kind == PointKind::logits) width = stack.vocabulary_size;
  return lengths_.batch * rows(point) * width * static_cast<std::int64_t>(sizeof(float));
}

ActivationTrace::Kept ActivationTrace::make(const Point& point) const {
  const StackSpecification& stack = architecture_.of(point.site);
  const PointShape shape = point_shape(stack, point.kind);
  Kept kept{.point = point,
            .of_heads = shape.has_heads,
            .of_planes = shape.is_plane,
            .array = {.name = point_name(point)}};
  if (kept.of_heads || kept.of_planes) {
    const std::int64_t all = query_heads(stack, point.kind);
    kept.heads = heads_;
    const auto is_absent = [&](std::int64_t head) { return head >= all; };
    std::erase_if(kept.heads, is_absent);
    require(!kept.heads.empty(), ErrorCode::invalid_argument,
            "head {} does not exist: {} has heads 0 to {}", heads_.front(), point_name(point),
            all - 1);
    for (std::int64_t& head : kept.heads) head /= all / shape.heads;
    kept.heads.erase(std::unique(kept.heads.begin(), kept.heads.end()), kept.heads.end());
  }
  const std::int64_t heads = std::ssize(kept.heads), positions = std::ssize(wanted(point));
  if (kept.of_planes) {
    kept.array.shape = {lengths_.batch, heads, positions, keys(point)};
  } else if (kept.of_heads) {
    kept.array.shape = {lengths_.batch, positions, heads, shape.width};
  } else {
    kept.array.shape = {lengths_.batch, positions, shape.width};
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
  const std::int64_t added = values.extent(kept.of_planes ? 2 : 1), all = rows(kept.point);
  require(values.extent(0) == lengths_.batch && kept.seen + added <= all,
          ErrorCode::invalid_argument,
          "{} positions of {} sequences after {} are more than the {} of {} that the trace is for",
          added, values.extent(0), kept.seen, all, lengths_.batch);
  if (kept.of_planes) {
    keep_planes(kept, values);
  } else {
    const std::vector<std::int64_t>& positions = wanted(kept.point);
    const std::int64_t width = kept.array.shape.back();
    for (std::int64_t b = 0; b < lengths_.batch; ++b) {
      for (std::int64_t row = 0; row < std::ssize(positions); ++row) {
        const std::int64_t t = positions[static_cast<std::size_t>(row)] - kept.seen;
        if (t < 0 || t >= added) continue;
        const std::int64_t heads = kept.of_heads ? std::ssize(kept.heads) : 1;
        float* to = kept.array.values.data() + (b * std::ssize(positions) + row) * heads * width;
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
  for (std::int64_t b = 0; b < lengths_.batch; ++b) {
    for (const std::int64_t head : kept.heads) {
      for (const std::int64_t position : wanted(kept.point)) {
        const std::int64_t t = position - kept.seen;
        if (t >= 0 && t < added) std::copy_n(&values(b, head, t, 0), values.extent(3), to);
        to += keys(kept.point);
      }
    }
  }
}

Trace ActivationTrace::take() {
  Trace trace;
  for (std::vector<Kept>* all : {&activations_, &gradients_}) {
    for (Kept& kept : *all) {
      const std::vector<std::int64_t>& positions = wanted(kept.point);
      const auto seen = std::ranges::lower_bound(positions, kept.seen) - positions.begin();
      if (kept.seen < rows(kept.point)) cut(kept.array, kept.of_planes, seen, kept.seen);
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

Trace trace_texts(const Transformer& model, Texts texts, const TraceRequest& request,
                  const GradientTarget& target, Editor* editor) {
  const Architecture& architecture = model.architecture();
  require_texts_fit(architecture, texts);
  const std::int64_t positions = std::ssize(texts.target), sources = std::ssize(texts.source);
  const bool gradients = asks_for_gradients(request);
  std::int64_t more = 0;
  for (const StackSpecification& stack : architecture.stacks) {
    if (!gradients) break;
    const bool attends = stack.block.cross_attention.has_value();
    const bool reads_source = architecture.is_encoder_decoder() && !attends;
    const std::int64_t rows = reads_source ? sources : positions, memory = attends ? sources : 0;
    more += StackActivations::bytes_needed(stack, 1, rows, Keep::residuals, memory) +
            ActivationGradients::bytes_needed(stack, rows, memory);
  }
  ActivationTrace trace(architecture, request, {.positions = positions, .sources = sources}, more);
  const RecordedPass pass(
      model, std::move(texts), borrowed_editor(editor),
      {.keep = gradients ? Keep::residuals : Keep::one_block, .observer = &trace});
  if (gradients) pass.backward(target, trace);
  Trace taken = trace.take();
  taken.tokens = pass.texts().target;
  return taken;
}

Trace trace_prompt(const Transformer& model, std::span<const std::int32_t> tokens,
                   const TraceRequest& request, const GradientTarget& target, Editor* editor) {
  return trace_texts(model, {.source = {}, .target = {tokens.begin(), tokens.end()}}, request,
                     target, editor);
}

const TracedArray* Trace::find(std::string_view name) const {
  const auto found = std::ranges::find(arrays, name, &TracedArray::name);
  return found == arrays.end() ? nullptr : &*found;
}

const TracedArray& Trace::at(std::string_view name) const {
  const TracedArray* found = find(name);
  require(found != nullptr, ErrorCode::not_found, "'{}' was not traced", name);
  return *found;
}

}  // namespace heed
