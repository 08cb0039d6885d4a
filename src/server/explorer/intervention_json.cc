#include "server/explorer/intervention_json.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"
#include "model/input_checks.h"
#include "server/fields.h"

namespace heed::server {
namespace {

constexpr std::int64_t number_bytes = sizeof(float);

// An intervention with its selection but without what its change holds.
std::int64_t held_bytes(const Intervention& intervention) {
  const std::size_t indices = intervention.where.heads.size() + intervention.where.neurons.size();
  // Lists grow by doubling.
  return static_cast<std::int64_t>(2 * sizeof(Intervention) + indices * sizeof(std::int64_t));
}

// "renormalise": what becomes of the weights that are left.
CutEdges::Rest read_rest(const Fields& fields) {
  return fields.boolean("renormalise").value_or(false) ? CutEdges::Rest::renormalised
                                                       : CutEdges::Rest::kept;
}

std::vector<CutEdges::Edge> read_edges(const Fields& fields) {
  const Json& list = fields.required_list("edges");
  std::vector<CutEdges::Edge> edges;
  edges.reserve(list.size());
  for (const Json& edge : list) {
    const bool is_pair = edge.is_array() && edge.size() == 2 && edge[0].is_number_integer() &&
                         edge[1].is_number_integer();
    require(is_pair, ErrorCode::invalid_argument,
            "\"edges\" must be a list of [query, key], not {}", edge.dump().substr(0, 40));
    edges.push_back({edge[0].get<std::int64_t>(), edge[1].get<std::int64_t>()});
  }
  return edges;
}

// Parses one object and adds its interventions. Values of recorded passes are filled in later.
class InterventionReader {
 public:
  InterventionReader(const Fields& fields, const InterventionSource& source,
                     std::vector<Intervention>& out, RecordedValues& recorded)
      : fields_(fields),
        source_(source),
        architecture_(source.model.architecture()),
        out_(out),
        recorded_(recorded) {}

  void read() {
    struct Verb {
      const char* name;
      void (InterventionReader::*read)();
    };
    static constexpr std::array verbs{Verb{"ablate", &InterventionReader::ablate},
                                      Verb{"mean", &InterventionReader::mean},
                                      Verb{"scale", &InterventionReader::scale},
                                      Verb{"add", &InterventionReader::add_vector},
                                      Verb{"steer", &InterventionReader::steer},
                                      Verb{"replace", &InterventionReader::replace},
                                      Verb{"swap", &InterventionReader::replace},
                                      Verb{"freeze", &InterventionReader::freeze},
                                      Verb{"cut", &InterventionReader::cut},
                                      Verb{"cut_words", &InterventionReader::cut_words},
                                      Verb{"mask", &InterventionReader::mask},
                                      Verb{"mask_future", &InterventionReader::mask_future}};
    const std::string kind = fields_.required_string("kind");
    std::vector<std::string> names;
    for (const Verb& verb : verbs) {
      if (kind == verb.name) return (this->*verb.read)();
      names.emplace_back(verb.name);
    }
    fail(ErrorCode::invalid_argument,
         "there is no intervention \"{}\": there are {}; did you mean \"{}\"?", kind.substr(0, 40),
         fmt::join(names, ", "), nearest_names(kind, names, 1).front());
  }

 private:
  TextLengths lengths() const { return TextLengths::of(source_.texts); }
  // What may be selected: a generation goes on beyond its text.
  TextLengths selectable() const {
    TextLengths all = lengths();
    if (source_.positions > 0) all.target = source_.positions;
    return all;
  }

  std::string point_text() const {
    std::string text = fields_.required_string("point");
    if (fields_.has("positions")) text += "@" + fields_.required_string("positions");
    return text;
  }

  std::vector<InterventionPoint> checked(std::vector<InterventionPoint> points,
                                         const std::string& text) const {
    for (const InterventionPoint& selected : points) {
      require_positions(selected, selectable(), text);
    }
    return points;
  }
  std::vector<InterventionPoint> selected_points() const {
    const std::string text = point_text();
    return checked(parse_points(architecture_, text), text);
  }
  std::vector<InterventionPoint> selected_patterns() const {
    const std::string text = point_text();
    return checked(pattern_points(architecture_, text), text);
  }

  void add(InterventionPoint selected, Change change) {
    Intervention added{.point = selected.point, .where = std::move(selected.where)};
    added.change = std::move(change);
    source_.take_memory(held_bytes(added));
    out_.push_back(std::move(added));
  }

  std::int64_t row_bytes(const Point& point) const {
    const PointShape shape = point_shape(architecture_.of(point.site), point.kind);
    return number_bytes * shape.width * (shape.has_heads ? shape.heads : 1);
  }
  std::int64_t value_bytes(const Point& point, const TextLengths& lengths) const {
    const PointShape shape = point_shape(architecture_.of(point.site), point.kind);
    const std::int64_t rows = lengths.rows(point);
    return tensor_bytes(shape.is_plane
                            ? number_bytes * shape.heads * rows * lengths.keys(site_of_plane(point))
                            : row_bytes(point) * rows);
  }
  static AttentionSite site_of_plane(const Point& point) {
    return {point.site, is_cross_point(point.kind) ? AttentionKind::cross : AttentionKind::self};
  }

  // The pass that a field names, or the unedited one over these texts.
  struct NamedPass {
    std::string id;  // empty: of these texts
    RecordedText recorded;
  };
  NamedPass pass_named(const char* field) const {
    const std::string id = fields_.required_string(field);
    return {id, source_.recorded(id)};
  }
  NamedPass this_pass() const {
    return {"", {lengths(), [&source = source_](Probe& probe) {
                   observe_pass(source.model, source.texts, probe);
                 }}};
  }

  // What is set is taken from a pass once the whole list is read. `bytes`: unless it is shared.
  void add_recorded(InterventionPoint selected, const NamedPass& pass,
                    const RecordedValues::Form& form, std::int64_t bytes) {
    const Point point = selected.point;
    require_point(architecture_, point);
    add(std::move(selected), SetZero{});
    want(pass, point, form, bytes);
  }
  // Of the intervention that was added last.
  void want(const NamedPass& pass, const Point& point, const RecordedValues::Form& form,
            std::int64_t bytes) {
    if (recorded_.want(pass.id, pass.recorded.replay, point, out_.size() - 1, form)) {
      source_.take_memory(bytes);
    }
  }

  void ablate() {
    fields_.expect_only({"kind", "point", "positions"});
    for (InterventionPoint& selected : selected_points()) add(std::move(selected), SetZero{});
  }

  // The mean over this text or over another pass, which stays the same while a text is continued.
  void mean() {
    fields_.expect_only({"kind", "point", "positions", "from"});
    const NamedPass pass = fields_.has("from") ? pass_named("from") : this_pass();
    for (InterventionPoint& selected : selected_points()) {
      require_mean(architecture_, selected.point);
      const std::int64_t bytes = row_bytes(selected.point);
      add_recorded(std::move(selected), pass, RecordedValues::Mean{}, bytes);
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

  // factor · (mean over `toward` − mean over `away`)
  void steer() {
    fields_.expect_only({"kind", "point", "positions", "factor", "toward", "away"});
    const float factor = fields_.required_float("factor");
    const NamedPass toward = pass_named("toward");
    for (InterventionPoint& selected : selected_points()) {
      const Point point = selected.point;
      require_mean(architecture_, point);
      require_point(architecture_, point);
      const std::int64_t bytes = row_bytes(point);
      source_.take_memory(bytes);
      add(std::move(selected),
          AddVector{std::vector<float>(static_cast<std::size_t>(bytes / number_bytes))});
      want(toward, point, RecordedValues::AddedMean{factor}, bytes);
      if (fields_.has("away")) {
        want(pass_named("away"), point, RecordedValues::AddedMean{-factor}, bytes);
      }
    }
  }

  void require_length(const NamedPass& pass, std::int64_t theirs, std::int64_t own,
                      bool of_source) const {
    require(theirs == own, ErrorCode::invalid_argument,
            "\"{}\" has {}{} tokens and this text {}: name \"positions\" (and \"from_positions\") "
            "to swap a part",
            pass.id, theirs, of_source ? " source" : "", own);
  }
  void require_same_length(const Point& point, const NamedPass& pass) const {
    const TextLengths theirs = pass.recorded.lengths;
    require_length(pass, theirs.rows(point), lengths().rows(point), has_source_rows(point));
    require_same_keys(point, pass);
  }
  void require_same_keys(const Point& point, const NamedPass& pass) const {
    if (!point_shape(architecture_.of(point.site), point.kind).is_plane) return;
    const AttentionSite site = site_of_plane(point);
    require_length(pass, pass.recorded.lengths.keys(site), lengths().keys(site),
                   site == cross_site);
  }

  void replace() {
    fields_.expect_only({"kind", "point", "positions", "from", "from_positions"});
    const NamedPass other = pass_named("from");
    const bool whole = !fields_.has("positions");
    require(!whole || !fields_.has("from_positions"), ErrorCode::invalid_argument,
            "\"from_positions\" needs \"positions\"");
    for (InterventionPoint& selected : selected_points()) {
      if (whole ||
          point_shape(architecture_.of(selected.point.site), selected.point.kind).is_plane) {
        require_same_length(selected.point, other);
        add_all_of(std::move(selected), other);
      } else {
        add_rows_of(std::move(selected), other);
      }
    }
  }

  void add_all_of(InterventionPoint selected, const NamedPass& pass) {
    const std::int64_t bytes = value_bytes(selected.point, pass.recorded.lengths);
    add_recorded(std::move(selected), pass, RecordedValues::All{}, bytes);
  }

  // The rows at from_positions, moved to the selected positions.
  void add_rows_of(InterventionPoint selected, const NamedPass& other) {
    const Point point = selected.point;
    const std::int64_t first = selected.where.first_position;
    const std::int64_t last = std::min(selected.where.last_position, selectable().rows(point) - 1);
    Selection theirs = selected.where;
    if (fields_.has("from_positions")) {
      theirs = parse_positions(fields_.required_string("from_positions"));
    }
    const std::int64_t their_positions = require_within(theirs, point, other);
    const std::int64_t their_last = std::min(theirs.last_position, their_positions - 1);
    require(
        their_last - theirs.first_position == last - first, ErrorCode::invalid_argument,
        "{} positions cannot be replaced by {}: \"positions\" and \"from_positions\" must have the "
        "same length",
        last - first + 1, their_last - theirs.first_position + 1);
    const std::int64_t bytes = tensor_bytes(row_bytes(point) * (last + 1));
    add_recorded(std::move(selected), other,
                 RecordedValues::Rows{.first = first, .last = last, .from = theirs.first_position},
                 bytes);
  }

  // Returns how many positions the other pass has at a point.
  static std::int64_t require_within(const Selection& where, const Point& point,
                                     const NamedPass& pass) {
    const std::int64_t positions = pass.recorded.lengths.rows(point);
    const bool is_open = where.last_position == Selection{}.last_position;
    const bool begins = where.first_position < positions;
    require(begins && (is_open || where.last_position < positions), ErrorCode::invalid_argument,
            "\"{}\" has positions 0 to {}, not {}", pass.id, positions - 1,
            begins ? where.last_position : where.first_position);
    return positions;
  }

  // Of a head, a block or an attention, or of all.
  void freeze() {
    fields_.expect_only({"kind", "point", "positions", "from"});
    const NamedPass other = pass_named("from");
    const bool whole = !fields_.has("positions");
    std::vector<InterventionPoint> patterns;
    if (fields_.has("point")) {
      patterns = selected_patterns();
    } else {
      require(whole, ErrorCode::invalid_argument,
              "\"positions\" needs a \"point\": a head or a block");
      for (const AttentionSite site : sites_of(architecture_)) {
        for (InterventionPoint& each : pattern_points(architecture_, site_name(site))) {
          patterns.push_back(std::move(each));
        }
      }
    }
    for (InterventionPoint& selected : patterns) {
      const AttentionSite site = site_of_pattern(selected.point);
      if (whole) {
        require_same_length(selected.point, other);
      } else {
        // To the end of the texts, where it is open.
        Selection where = selected.where;
        require(where.last_position < other.recorded.lengths.rows(selected.point),
                ErrorCode::invalid_argument, "\"{}\" has positions 0 to {}, not {}", other.id,
                other.recorded.lengths.rows(selected.point) - 1, where.last_position);
        const bool is_full = attention_of(architecture_, site).mask.kind == MaskKind::full;
        if (is_full) require_same_keys(selected.point, other);
      }
      add_all_of(std::move(selected), other);
    }
  }

  void add_cut(InterventionPoint pattern, CutEdges cut) {
    source_.take_memory(std::ssize(cut.edges) * std::int64_t{sizeof(CutEdges::Edge)});
    add(std::move(pattern), std::move(cut));
  }

  // The head is a "point", or in a model of one stack "layer" and "head".
  void cut() {
    std::string text;
    if (fields_.has("point")) {
      fields_.expect_only({"kind", "point", "edges", "renormalise"});
      text = fields_.required_string("point");
    } else {
      fields_.expect_only({"kind", "layer", "head", "edges", "renormalise"});
      require(!architecture_.is_encoder_decoder(), ErrorCode::invalid_argument,
              "\"cut\" needs a \"point\", such as cross.L1H2");
      const std::int64_t layer =
          checked_layer(fields_.required_integer("layer"), architecture_.decoder());
      text = fmt::format("L{}H{}", layer,
                         checked_head(fields_.required_integer("head"), architecture_.decoder()));
    }
    const CutEdges cut{read_edges(fields_), read_rest(fields_)};
    for (InterventionPoint& pattern : pattern_points(architecture_, text)) {
      require_edges(pattern, cut.edges, selectable(), text);
      add_cut(std::move(pattern), cut);
    }
  }

  // From the positions that write word "target", or in an encoder those that read it, to the tokens
  // of word "source".
  void cut_words() {
    fields_.expect_only({"kind", "point", "target", "source", "renormalise"});
    const std::int64_t query = fields_.required_integer("target");
    const std::int64_t key = fields_.required_integer("source");
    for (InterventionPoint& pattern : selected_patterns()) {
      CutEdges cut{edges_between_words(architecture_, site_of_pattern(pattern.point), source_.texts,
                                       source_.words, query, key),
                   read_rest(fields_)};
      add_cut(std::move(pattern), std::move(cut));
    }
  }

  void mask() {
    fields_.expect_only({"kind", "point", "positions", "mask"});
    set_mask(parse_mask(fields_.required_string("mask")));
  }
  void mask_future() {
    fields_.expect_only({"kind", "point"});
    set_mask({SetMask::Kind::causal});
  }
  void set_mask(const SetMask& mask) {
    for (InterventionPoint& pattern : selected_patterns()) {
      require(!is_cross_point(pattern.point.kind), ErrorCode::invalid_argument,
              "\"{}\" is of attention within one text: \"point\" must be such as {}, not \"{}\"",
              fields_.required_string("kind"),
              architecture_.is_encoder_decoder() ? "encoder, encoder.L0 or encoder.L0H1"
                                                 : "self, L0 or L0H1",
              fields_.required_string("point").substr(0, 40));
      pattern.point.kind = PointKind::scores;
      add(std::move(pattern), mask);
    }
  }

  const Fields& fields_;
  const InterventionSource& source_;
  const Architecture& architecture_;
  std::vector<Intervention>& out_;
  RecordedValues& recorded_;
};

}  // namespace

std::shared_ptr<Interventions> read_interventions(const Json& list,
                                                  const InterventionSource& source) {
  if (list.is_null()) return nullptr;
  require(list.is_array(), ErrorCode::invalid_argument, "\"interventions\" must be a list, not {}",
          list.type_name());
  require(list.size() <= max_interventions, ErrorCode::invalid_argument,
          "{} interventions are more than the {} of one pass", list.size(), max_interventions);
  RecordedValues recorded;
  std::vector<Intervention> interventions;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Fields fields(list[i], fmt::format("intervention {}", i));
    InterventionReader(fields, source, interventions, recorded).read();
  }
  if (interventions.empty()) return nullptr;
  recorded.fill(interventions, source.stop);
  return std::make_shared<Interventions>(source.model.architecture(), std::move(interventions));
}

}  // namespace heed::server
