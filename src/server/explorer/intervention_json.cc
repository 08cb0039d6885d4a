#include "server/explorer/intervention_json.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "microscope/intervene/intervention_text.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/text_pass.h"
#include "model/input_checks.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/recorded_values.h"

namespace heed::server {
namespace {

constexpr std::int64_t number_bytes = sizeof(float);

// Parses one object and adds its interventions. Values of traces are filled in later.
class Reader {
 public:
  Reader(const Fields& fields, const InterventionSource& source, std::vector<Intervention>& out,
         RecordedValues& recorded)
      : fields_(fields),
        source_(source),
        config_(source.gpt.specification()),
        out_(out),
        recorded_(recorded) {}

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
    Intervention added{.point = selected.point, .where = std::move(selected.where)};
    added.change = std::move(change);
    source_.take_memory(held_bytes(added));
    out_.push_back(std::move(added));
  }

  // What is set is taken from a pass once the whole list is read. `bytes`: unless it is shared.
  void add_recorded(InterventionPoint selected, const StoredTrace* trace,
                    const RecordedValues::Form& form, std::int64_t bytes) {
    require_point(config_, selected.point);
    const auto replay = [&source = source_, trace](Probe& probe) {
      if (trace != nullptr) return trace->pass->replay(probe);
      run_text(source.gpt, source.tokens, probe);
    };
    const Point point = selected.point;
    add(std::move(selected), SetZero{});
    if (recorded_.want(trace, replay, point, out_.size() - 1, form)) source_.take_memory(bytes);
  }

  void ablate() {
    fields_.expect_only({"kind", "point", "positions"});
    for (InterventionPoint& selected : selected_points()) add(std::move(selected), SetZero{});
  }

  // The mean over this text or over another trace, which stays the same while a text is continued.
  void mean() {
    fields_.expect_only({"kind", "point", "positions", "from"});
    const StoredTrace* const trace = fields_.has("from") ? &from() : nullptr;
    for (InterventionPoint& selected : selected_points()) {
      require_mean(config_, selected.point);
      const std::int64_t bytes = row_bytes(selected.point);
      add_recorded(std::move(selected), trace, RecordedValues::Mean{}, bytes);
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
    for (InterventionPoint& selected : selected_points()) {
      source_.take_memory(std::ssize(vector) * number_bytes);
      add(std::move(selected), AddVector{vector});
    }
  }

  StoredTrace& from() const {
    StoredTrace& trace =
        source_.traces.use_of_one_text(fields_.required_string("from"), "values are taken");
    StackSpecification theirs = trace.specification();
    theirs.embedding_dropout = config_.embedding_dropout;
    require(theirs.layers == config_.layers && theirs.heads() == config_.heads() &&
                theirs.channels == config_.channels && theirs.head_size() == config_.head_size() &&
                theirs.feed_forward() == config_.feed_forward(),
            ErrorCode::invalid_argument, "trace {} is of a model with a different shape", trace.id);
    return trace;
  }

  // Of one position of a point that is no plane.
  std::int64_t row_bytes(const Point& point) const {
    const PointShape shape = point_shape(config_, point.kind);
    return shape.width * (shape.has_heads ? shape.heads : 1) * number_bytes;
  }

  std::int64_t value_bytes(const Point& point, std::int64_t positions) const {
    const PointShape shape = point_shape(config_, point.kind);
    return tensor_bytes(shape.is_plane ? shape.heads * positions * positions * number_bytes
                                       : row_bytes(point) * positions);
  }

  void add_all_of(InterventionPoint selected, const StoredTrace& trace) {
    const std::int64_t bytes = value_bytes(selected.point, trace.positions());
    add_recorded(std::move(selected), &trace, RecordedValues::All{}, bytes);
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
      const bool is_plane = point_shape(config_, selected.point.kind).is_plane;
      if (whole || is_plane) {
        require_same_length(other);
        add_all_of(std::move(selected), other);
      } else {
        add_rows_of(std::move(selected), other);
      }
    }
  }

  // The rows at from_positions, moved to the selected positions.
  void add_rows_of(InterventionPoint selected, const StoredTrace& other) {
    const std::int64_t first = selected.where.first_position;
    const std::int64_t last = std::min(selected.where.last_position, source_.last_position);
    Selection theirs = selected.where;
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
    const std::int64_t bytes = value_bytes(selected.point, last + 1);
    add_recorded(std::move(selected), &other,
                 RecordedValues::Rows{.first = first, .last = last, .from = theirs.first_position},
                 bytes);
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
      add_all_of(selected, other);
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
    source_.take_memory(std::ssize(cut.edges) * std::int64_t{sizeof(CutEdges::Edge)});
    add({.point = {PointKind::pattern, layer}, .where = {.heads = {head}}}, std::move(cut));
  }

  const Fields& fields_;
  const InterventionSource& source_;
  const StackSpecification& config_;
  std::vector<Intervention>& out_;
  RecordedValues& recorded_;
};

}  // namespace

std::shared_ptr<Interventions> read_interventions(const Json& list,
                                                  const InterventionSource& source) {
  RecordedValues recorded;
  std::vector<Intervention> interventions =
      read_intervention_list(list, [&](const Fields& fields, std::vector<Intervention>& out) {
        Reader(fields, source, out, recorded).read();
      });
  if (interventions.empty()) return nullptr;
  recorded.fill(interventions, source.stop);
  return std::make_shared<Interventions>(source.gpt.specification(), std::move(interventions));
}

}  // namespace heed::server
