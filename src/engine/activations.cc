// Passes that are recorded, of the public facade.
#include "engine/activations.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "engine/facade.h"
#include "kernels/elements.h"
#include "microscope/intervene/intervention.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/head_points.h"
#include "model/input_checks.h"

namespace heed {
namespace {

SharedView dense_view(const Array& array) {
  SharedView view{.data = array.owner().get(), .shape = array.shape(), .owner = array.owner()};
  view.strides.assign(view.shape.size(), 1);
  for (std::size_t i = view.shape.size(); i-- > 1;) {
    view.strides[i - 1] = view.strides[i] * view.shape[i];
  }
  return view;
}

std::vector<std::int64_t> lengths_of(const Sequences& sequences) {
  std::vector<std::int64_t> lengths;
  for (const Sequence each : sequences) lengths.push_back(each.length());
  return lengths;
}

// Points that only some readers want, and that take the memory of all heads' streams.
bool is_optional(PointKind kind) {
  return kind == PointKind::attention_in || kind == PointKind::query_input ||
         kind == PointKind::key_input || kind == PointKind::value_input ||
         kind == PointKind::feed_forward_in || kind == PointKind::head_results;
}

}  // namespace

Point Activations::Parts::point(std::string_view name) const {
  const std::optional<Point> point = point_from_name(name);
  require(point.has_value() && has(name), ErrorCode::not_found, "'{}' was not recorded", name);
  return *point;
}

bool Activations::Parts::has(std::string_view name) const {
  if (kept.contains(name) || std::ranges::find(names, name) != names.end()) return true;
  const std::optional<Point> point = point_from_name(name);
  if (point && follows_from_given(*point)) return true;
  if (!pass || !point || architecture.is_encoder_decoder() != (point->site != StackSite::only)) {
    return false;
  }
  const StackSpecification& stack = architecture.of(point->site);
  return has_point(stack, point->kind) && point->layer < stack.layers;
}

std::int64_t Activations::Parts::queries(const Point& point) const {
  return has_source_rows(point) ? sources : positions;
}

std::int64_t Activations::Parts::keys(const Point& plane) const {
  return has_source_rows(plane) || is_cross_point(plane.kind) ? sources : positions;
}

const Sequences& Activations::Parts::rows_of(const Point& point) const {
  return has_source_rows(point) ? source_rows : rows;
}

const Sequences& Activations::Parts::keys_of(const Point& plane) const {
  return has_source_rows(plane) || is_cross_point(plane.kind) ? source_rows : rows;
}

Tensor<float> Activations::Parts::tiles(const Point& point, AttentionTiles wanted,
                                        Device place) const {
  const std::int64_t heads = point_shape(architecture.of(point.site), point.kind).heads;
  const auto all = [](std::vector<std::int64_t>& indices, std::int64_t count) {
    if (!indices.empty()) return;
    indices.resize(static_cast<std::size_t>(count));
    std::iota(indices.begin(), indices.end(), 0);
  };
  const std::int64_t sequences = this->rows.count();
  all(wanted.sequences, sequences);
  all(wanted.heads, heads);
  const std::int64_t height = wanted.query_end - wanted.query_begin;
  const std::int64_t columns = wanted.key_end - wanted.key_begin;
  require(0 <= wanted.query_begin && height >= 0 && wanted.query_end <= queries(point) &&
              0 <= wanted.key_begin && columns >= 0 && wanted.key_end <= keys(point),
          ErrorCode::invalid_argument,
          "queries [{}, {}) and keys [{}, {}) are not within {} and {} positions",
          wanted.query_begin, wanted.query_end, wanted.key_begin, wanted.key_end, queries(point),
          keys(point));
  for (const std::int64_t sequence : wanted.sequences) {
    require(sequence >= 0 && sequence < sequences, ErrorCode::invalid_argument,
            "sequence {} does not exist: the batch has {}", sequence, sequences);
  }
  for (const std::int64_t head : wanted.heads) {
    require(head >= 0 && head < heads, ErrorCode::invalid_argument,
            "head {} does not exist: the model has heads 0 to {}", head, heads - 1);
  }
  Tensor<float> planes(
      Shape{std::ssize(wanted.sequences), std::ssize(wanted.heads), height, columns}, place);
  if (planes.shape().size() == 0) return planes;
  for (std::size_t b = 0; b < wanted.sequences.size(); ++b) {
    for (std::size_t h = 0; h < wanted.heads.size(); ++h) {
      const View<float> out =
          planes.view()[static_cast<std::int64_t>(b)][static_cast<std::int64_t>(h)];
      if (pass) {
        const kernels::AttentionTile tile{.batch = wanted.sequences[b],
                                          .head = wanted.heads[h],
                                          .query_begin = wanted.query_begin,
                                          .query_end = wanted.query_end,
                                          .key_begin = wanted.key_begin,
                                          .key_end = wanted.key_end};
        copy_tile(point, tile, out);
        continue;
      }
      const Tensor<float> plane =
          attention_reader(attention, point)
              ->region({.layer = point.layer,
                        .head = wanted.heads[h],
                        .query_begin = wanted.query_begin,
                        .query_end = wanted.query_end,
                        .key_begin = wanted.key_begin,
                        .key_end = wanted.key_end,
                        .values = is_scores_point(point.kind) ? AttentionValues::scores
                                                              : AttentionValues::pattern});
      kernels::copy(plane, out);
    }
  }
  return planes;
}

// A tile within the text that it is of; what lies after its end is no attention.
void Activations::Parts::copy_tile(const Point& point, const kernels::AttentionTile& tile,
                                   View<float> out) const {
  kernels::AttentionTile own = tile;
  own.query_end = std::min(tile.query_end, rows_of(point)[tile.batch].length());
  own.key_end = std::min(tile.key_end, keys_of(point)[tile.batch].length());
  if (own.query_end == tile.query_end && own.key_end == tile.key_end) {
    return pass->attention_tile(point, tile, out);
  }
  kernels::fill(out, is_scores_point(point.kind) ? -std::numeric_limits<float>::infinity() : 0.0F);
  const std::int64_t height = own.query_end - own.query_begin, width = own.key_end - own.key_begin;
  if (height <= 0 || width <= 0) return;
  Tensor<float> inside(Shape{height, width}, out.device());
  pass->attention_tile(point, own, inside);
  kernels::copy(inside, out.slice(0, 0, height).slice(1, 0, width));
}

const Transformer& activations_model(const Activations& found) {
  const Transformer* const transformer = ActivationsAccess::parts(found).transformer;
  require(transformer != nullptr, ErrorCode::unsupported,
          "this reads the one stream of a decoder or an encoder, and an encoder-decoder has two");
  return *transformer;
}

bool Activations::Parts::follows_from_given(const Point& point) const {
  return given == GivenActivations::Kind::of_pass && point.kind == PointKind::head_results &&
         point.site == StackSite::only && point.layer >= 0 &&
         point.layer < transformer->specification().layers &&
         kept.contains(point_name({PointKind::mixed_values, point.layer, point.site}));
}

// (B, T, H, C)
Tensor<float> Activations::Parts::head_results_of_given(std::int64_t layer) const {
  const Array& mixed = kept.find(point_name({PointKind::mixed_values, layer}))->second;
  const StackSpecification& stack = transformer->specification();
  require(
      mixed.shape() ==
          std::vector<std::int64_t>{rows.count(), positions, stack.heads(), stack.head_size()},
      ErrorCode::invalid_argument, "mixed values have the shape ({}), expected ({}, {}, {}, {})",
      fmt::join(mixed.shape(), ", "), rows.count(), positions, stack.heads(), stack.head_size());
  return results_of_heads(stack, transformer->parameters().block(layer).projection,
                          {mixed.data(), {rows.count() * positions, stack.attention_width()}},
                          positions, positions);
}

// (B, T, …)
Tensor<float> Activations::Parts::values(const Point& point) const {
  if (!pass) return head_results_of_given(point.layer);
  if (!rows.is_ragged()) return pass->computed(point);
  const View<float> stored = pass->stored(point);
  if (stored.present()) return padded(rows_of(point), stored);
  return padded(rows_of(point), pass->computed(point));
}

Activations::Activations(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Activations::Activations(Activations&&) noexcept = default;
Activations& Activations::operator=(Activations&&) noexcept = default;
Activations::~Activations() = default;

std::int64_t Activations::sequences() const { return parts_->rows.count(); }
std::vector<std::int64_t> Activations::lengths() const { return lengths_of(parts_->rows); }
std::vector<std::int64_t> Activations::source_lengths() const {
  if (!parts_->architecture.is_encoder_decoder()) return {};
  return lengths_of(parts_->source_rows);
}
std::int64_t Activations::positions() const { return parts_->positions; }
const std::vector<std::int32_t>& Activations::tokens() const { return parts_->tokens; }
const std::vector<std::int32_t>& Activations::source_tokens() const { return parts_->source; }
const std::vector<std::string>& Activations::names() const { return parts_->names; }
const Array& Activations::logits() const { return parts_->logits; }

std::string Activations::full_name(std::string_view name) const {
  const bool gradient = name.ends_with(gradient_suffix);
  const std::string_view plain =
      gradient ? name.substr(0, name.size() - gradient_suffix.size()) : name;
  const std::vector<Point> points = points_named(plain, parts_->architecture);
  require(points.size() == 1, ErrorCode::invalid_argument,
          "'{}' names {} points, from {} to {}: add a layer", name, points.size(),
          point_name(points.front()), point_name(points.back()));
  return point_name(points.front()) + std::string(gradient ? gradient_suffix : "");
}

bool Activations::has(std::string_view name) const { return parts_->has(name); }

bool Activations::is_lazy_attention(std::string_view name) const {
  const std::optional<Point> point = point_from_name(name);
  return point && is_plane(point->kind) && !parts_->kept.contains(name) && has(name);
}

std::vector<std::int64_t> Activations::shape(std::string_view name) const {
  if (const auto kept = parts_->kept.find(name); kept != parts_->kept.end()) {
    return kept->second.shape();
  }
  const Point point = parts_->point(name);
  const PointShape shape = point_shape(parts_->architecture.of(point.site), point.kind);
  const std::int64_t b = parts_->rows.count(), t = parts_->queries(point);
  if (shape.is_plane) return {b, shape.heads, t, parts_->keys(point)};
  if (shape.has_heads) return {b, t, shape.heads, shape.width};
  return {b, t, shape.width};
}

SharedView Activations::at(std::string_view name) const {
  if (const auto kept = parts_->kept.find(name); kept != parts_->kept.end()) {
    return dense_view(kept->second);
  }
  const Point point = parts_->point(name);
  if (parts_->pass) {
    if (point.kind == PointKind::logits && !parts_->logits.empty()) {
      return dense_view(parts_->logits);
    }
    const View<float> stored = parts_->pass->stored(point);
    if (stored.present() && !parts_->rows.is_ragged()) {
      return {.data = stored.data(),
              .shape = {stored.shape().begin(), stored.shape().end()},
              .strides = {stored.strides().begin(), stored.strides().begin() + stored.rank()},
              .owner = parts_};
    }
  }
  const std::vector<std::int64_t> extents = shape(name);
  const std::lock_guard lock(parts_->mutex);
  std::weak_ptr<float[]>& known = parts_->computed[std::string(name)];
  if (const auto owner = known.lock()) return dense_view(Array(extents, owner));
  Tensor<float> computed =
      is_plane(point.kind) ? parts_->tiles(point, {.query_end = extents[2], .key_end = extents[3]})
                           : parts_->values(point);
  const Array values = make_array(std::move(computed));
  known = values.owner();
  return dense_view(values);
}

Array Activations::attention(std::string_view name, const AttentionTiles& tiles) const {
  const Point point = parts_->point(name);
  require(is_plane(point.kind) && !parts_->kept.contains(name), ErrorCode::invalid_argument,
          "'{}' has no tiles: expected scores or a pattern that no hook changed", name);
  return make_array(parts_->tiles(point, tiles));
}

SharedView checked_point(const Activations& found, std::string_view name) {
  const SharedView view = found.at(name);
  const ActivationsAccess::Parts& parts = ActivationsAccess::parts(found);
  const Point point = parts.point(name);
  const PointShape shape = point_shape(activations_model(found).specification(), point.kind);
  std::vector<std::int64_t> expected{found.sequences(), found.positions(), shape.width};
  if (shape.has_heads) expected.insert(expected.begin() + 2, shape.heads);
  require(view.shape == expected, ErrorCode::invalid_argument,
          "'{}' has the shape ({}), expected ({})", name, fmt::join(view.shape, ", "),
          fmt::join(expected, ", "));
  return view;
}

Activations activations_from(const Model& model, GivenActivations given) {
  const Transformer& transformer = ModelAccess::of_one_text(model).transformer;
  require(!given.lengths.empty() && std::ranges::min(given.lengths) >= 1,
          ErrorCode::invalid_argument, "({}) are not the lengths of sequences",
          fmt::join(given.lengths, ", "));
  auto parts = std::make_shared<ActivationsAccess::Parts>();
  parts->architecture = transformer.architecture();
  parts->device = transformer.device();
  parts->transformer = &transformer;
  std::vector<std::int64_t> row_starts{0};
  for (const std::int64_t length : given.lengths) row_starts.push_back(row_starts.back() + length);
  parts->rows = Sequences::of_lengths(row_starts);
  parts->positions = std::ranges::max(given.lengths);
  for (const auto& entry : given.arrays) parts->names.push_back(entry.first);
  parts->kept = std::move(given.arrays);
  parts->given = given.kind;
  return ActivationsAccess::make(std::move(parts));
}

std::int64_t Activations::bytes() const {
  std::int64_t bytes = parts_->pass ? parts_->pass->bytes() : 0;
  for (const auto& [name, values] : parts_->kept) {
    bytes += static_cast<std::int64_t>(values.size() * sizeof(float));
  }
  for (const LazyAttention& reader : parts_->attention) bytes += reader.bytes();
  return bytes;
}

RequestedPoints::RequestedPoints(const RecordRequest& request, const Architecture& architecture) {
  std::vector<Point> wanted;
  for (const std::string_view name : request.points) {
    const bool gradient = name.ends_with(gradient_suffix);
    const std::string_view plain =
        gradient ? name.substr(0, name.size() - gradient_suffix.size()) : name;
    std::vector<Point>& among = gradient ? gradients : wanted;
    for (const Point& point : points_named(plain, architecture)) among.push_back(point);
  }
  for (const Point& point : all_points(architecture)) {
    const bool selected = request.points.empty() ? !is_optional(point.kind)
                                                 : std::ranges::find(wanted, point) != wanted.end();
    if (!selected) continue;
    points.push_back(point);
    names.push_back(point_name(point));
  }
  for (const Point& point : gradients) {
    names.push_back(point_name(point) + std::string(gradient_suffix));
  }
}

}  // namespace heed
