#include "server/explorer/intervention_json.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest_names.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/traces/capture.h"
#include "microscope/traces/point_names.h"
#include "model/input_checks.h"
#include "server/explorer/intervention_fields.h"

namespace heed::server {
namespace {

// Parses one object and adds its interventions.
class Reader {
 public:
  Reader(const Fields& fields, const InterventionSource& source, std::vector<Intervention>& out)
      : fields_(fields), source_(source), config_(source.gpt.config()), out_(out) {}

  void read() {
    const std::string kind = fields_.required_string("kind");
    if (kind == "ablate") return ablate();
    if (kind == "mean") return mean();
    if (kind == "scale") return scale();
    if (kind == "add") return add_vector();
    if (kind == "swap") return swap();
    if (kind == "freeze") return freeze();
    if (kind == "cut") return cut();
    const std::vector<std::string> kinds{"ablate", "mean", "scale", "add", "swap", "freeze", "cut"};
    fail(ErrorCode::invalid_argument,
         "there is no intervention \"{}\": there are ablate, mean, scale, add, swap, freeze and "
         "cut; did you mean \"{}\"?",
         kind.substr(0, 40), nearest_names(kind, kinds, 1).front());
  }

 private:
  std::vector<InterventionPoint> selected_points() const {
    std::string text = fields_.required_string("point");
    if (fields_.has("positions")) text += "@" + fields_.required_string("positions");
    std::vector<InterventionPoint> found = parse_points(config_, text);
    for (const InterventionPoint& selected : found) check_positions(selected.where);
    return found;
  }

  void check_positions(const Selection& where) const {
    const bool whole = where.last_position == Selection{}.last_position;
    require(where.first_position <= source_.last_position &&
                (whole || where.last_position <= source_.last_position),
            ErrorCode::invalid_argument, "there is no position {}: the text has 0 to {}",
            whole ? where.first_position : where.last_position, source_.last_position);
  }

  void add(InterventionPoint selected, Change change) {
    Intervention& added = out_.emplace_back();
    added.point = selected.point;
    added.where = std::move(selected.where);
    added.change = std::move(change);
  }

  void ablate() {
    fields_.expect_only({"kind", "point", "positions"});
    for (InterventionPoint& selected : selected_points()) add(std::move(selected), SetZero{});
  }

  // The mean over this text or over that of another trace, which stays the same while a text is
  // continued.
  void mean() {
    fields_.expect_only({"kind", "point", "positions", "from"});
    const auto tokens = fields_.has("from") ? from().pass->tokens() : source_.tokens;
    const std::vector<std::vector<std::int32_t>> texts{{tokens.begin(), tokens.end()}};
    for (InterventionPoint& selected : selected_points()) {
      std::vector<float> row = mean_row(source_.gpt, selected.point, texts);
      add(std::move(selected), SetRow{std::move(row)});
    }
  }

  void scale() {
    fields_.expect_only({"kind", "point", "positions", "factor"});
    const float factor = fields_.required_float("factor");
    for (InterventionPoint& selected : selected_points()) add(std::move(selected), ScaleBy{factor});
  }

  void add_vector() {
    fields_.expect_only({"kind", "point", "positions", "vector"});
    const std::vector<float> vector = fields_.required_floats("vector");
    for (InterventionPoint& selected : selected_points())
      add(std::move(selected), AddVector{vector});
  }

  StoredTrace& from() const {
    StoredTrace& trace = source_.traces.use(fields_.required_string("from"));
    StackSpecification theirs = trace.config();
    theirs.embedding_dropout = config_.embedding_dropout;
    require(theirs.layers == config_.layers && theirs.heads() == config_.heads() &&
                theirs.channels == config_.channels && theirs.head_size() == config_.head_size() &&
                theirs.feed_forward() == config_.feed_forward(),
            ErrorCode::invalid_argument, "trace {} is of a model with a different shape", trace.id);
    return trace;
  }

  static Tensor<float> values_of(const StoredTrace& trace, const Point& point) {
    if (point.kind == PointKind::scores || point.kind == PointKind::pattern) {
      const std::int64_t heads = trace.config().heads();
      Tensor<float> planes(Shape{1, heads, trace.positions(), trace.positions()});
      for (std::int64_t head = 0; head < heads; ++head) {
        const Tensor<float> plane = trace.pass->plane(point, head);
        std::ranges::copy(plane.span(), planes.view()[0][head].data());
      }
      return planes;
    }
    Capture capture(std::vector<Point>{point});
    trace.pass->replay(capture);
    Tensor<float> values(capture.at(point).shape());
    std::ranges::copy(capture.at(point).span(), values.data());
    return values;
  }

  void require_same_length(const StoredTrace& other) const {
    require(other.positions() == std::ssize(source_.tokens), ErrorCode::invalid_argument,
            "trace {} has {} tokens and this text {}: name \"positions\" (and \"from_positions\") "
            "to swap a part",
            other.id, other.positions(), source_.tokens.size());
  }

  void swap() {
    fields_.expect_only({"kind", "point", "positions", "from", "from_positions"});
    const StoredTrace& other = from();
    const bool whole = !fields_.has("positions");
    require(!whole || !fields_.has("from_positions"), ErrorCode::invalid_argument,
            "\"from_positions\" needs \"positions\"");
    for (InterventionPoint& selected : selected_points()) {
      Tensor<float> values = values_of(other, selected.point);
      if (whole || is_plane(selected.point)) require_same_length(other);
      if (!whole && !is_plane(selected.point)) values = moved(values, selected.where, other);
      add(std::move(selected), ReplaceWith(std::move(values)));
    }
  }

  static bool is_plane(const Point& point) {
    return point.kind == PointKind::scores || point.kind == PointKind::pattern;
  }

  // The rows at from_positions, moved to the positions of `where`.
  Tensor<float> moved(const Tensor<float>& values, const Selection& where,
                      const StoredTrace& other) const {
    const std::int64_t first = where.first_position;
    const std::int64_t last = std::min(where.last_position, source_.last_position);
    Selection theirs = where;
    if (fields_.has("from_positions")) {
      theirs = parse_points(config_, "resid_pre0@" + fields_.required_string("from_positions"))
                   .front()
                   .where;
    }
    const std::int64_t their_last = std::min(theirs.last_position, other.positions() - 1);
    require(
        theirs.first_position < other.positions() &&
            (theirs.last_position == Selection{}.last_position ||
             theirs.last_position < other.positions()),
        ErrorCode::invalid_argument, "trace {} has positions 0 to {}, not {}", other.id,
        other.positions() - 1,
        theirs.first_position < other.positions() ? theirs.last_position : theirs.first_position);
    require(
        their_last - theirs.first_position == last - first, ErrorCode::invalid_argument,
        "{} positions cannot be replaced by {}: \"positions\" and \"from_positions\" must have the "
        "same length",
        last - first + 1, their_last - theirs.first_position + 1);
    std::array<std::int64_t, Shape::max_rank> extents{};
    std::ranges::copy(values.shape().begin(), values.shape().begin() + values.shape().rank(),
                      extents.begin());
    extents[1] = last + 1;
    Tensor<float> placed(Shape(extents.data(), values.shape().rank()));
    const std::int64_t row = values.size() / values.shape()[1];
    for (std::int64_t t = first; t <= last; ++t) {
      std::copy_n(values.data() + (theirs.first_position + t - first) * row, row,
                  placed.data() + t * row);
    }
    return placed;
  }

  void freeze() {
    fields_.expect_only({"kind", "point", "positions", "from"});
    const StoredTrace& other = from();
    const bool whole = !fields_.has("positions");
    if (whole) require_same_length(other);
    for (const InterventionPoint& selected : selected_patterns()) {
      require(whole || selected.where.last_position < other.positions(),
              ErrorCode::invalid_argument, "trace {} has positions 0 to {}, not {}", other.id,
              other.positions() - 1, selected.where.last_position);
      add(selected, ReplaceWith(values_of(other, selected.point)));
    }
  }

  // The patterns of a head, of a block or a point of one, or of every block.
  std::vector<InterventionPoint> selected_patterns() const {
    if (!fields_.has("point")) {
      require(!fields_.has("positions"), ErrorCode::invalid_argument,
              "\"positions\" needs a \"point\": a head or a block");
      std::vector<InterventionPoint> all;
      for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
        all.push_back({.point = {PointKind::pattern, layer}, .where = {}});
      }
      return all;
    }
    return pattern_points(selected_points(), fields_.required_string("point"));
  }

  void cut() {
    fields_.expect_only({"kind", "layer", "head", "edges", "renormalise"});
    const std::int64_t layer = checked_layer(fields_.required_integer("layer"), config_);
    const std::int64_t head = checked_head(fields_.required_integer("head"), config_);
    CutEdges cut = read_cut(fields_);
    for (const CutEdges::Edge& edge : cut.edges) {
      require(edge.query <= source_.last_position, ErrorCode::invalid_argument,
              "there is no position {}: the text has 0 to {}", edge.query, source_.last_position);
    }
    add({.point = {PointKind::pattern, layer}, .where = {.heads = {head}}}, std::move(cut));
  }

  const Fields& fields_;
  const InterventionSource& source_;
  const StackSpecification& config_;
  std::vector<Intervention>& out_;
};

}  // namespace

std::shared_ptr<Interventions> read_interventions(const Json& list,
                                                  const InterventionSource& source) {
  std::vector<Intervention> interventions =
      read_intervention_list(list, [&](const Fields& fields, std::vector<Intervention>& out) {
        Reader(fields, source, out).read();
      });
  if (interventions.empty()) return nullptr;
  return std::make_shared<Interventions>(source.gpt.config(), std::move(interventions));
}

}  // namespace heed::server
