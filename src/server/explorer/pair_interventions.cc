#include "server/explorer/pair_interventions.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "microscope/intervene/pair_intervention_text.h"
#include "server/explorer/intervention_fields.h"
#include "server/explorer/recorded_values.h"

namespace heed::server {
namespace {

// Parses one object and adds its interventions.
class PairReader {
 public:
  PairReader(const Fields& fields, const PairInterventionSource& source,
             std::vector<Intervention>& out, RecordedValues& recorded)
      : fields_(fields),
        source_(source),
        architecture_(source.model.architecture()),
        out_(out),
        recorded_(recorded) {}

  void read() {
    const std::string kind = fields_.required_string("kind");
    if (kind == "ablate") return ablate();
    if (kind == "scale") return scale();
    if (kind == "cut") return cut();
    if (kind == "cut_words") return cut_words();
    if (kind == "mask_future") return mask_future();
    if (kind == "swap") return swap();
    const std::vector<std::string> kinds{"ablate",    "scale",       "cut",
                                         "cut_words", "mask_future", "swap"};
    fail(ErrorCode::invalid_argument,
         "there is no intervention \"{}\" in a pair of texts: there are ablate, scale, cut, "
         "cut_words, mask_future and swap; did you mean \"{}\"?",
         kind.substr(0, 40), nearest_names(kind, kinds, 1).front());
  }

 private:
  void add(const InterventionPoint& selected, const Change& change) {
    Intervention added{.point = selected.point, .where = selected.where, .change = change};
    source_.take_memory(held_bytes(added));
    out_.push_back(std::move(added));
  }

  void add_cut(const InterventionPoint& pattern, const CutEdges& cut) {
    source_.take_memory(std::ssize(cut.edges) * std::int64_t{sizeof(CutEdges::Edge)});
    add(pattern, cut);
  }

  std::int64_t positions_of(const Point& point) const {
    return std::ssize(has_source_rows(point) ? source_.tokens.source : source_.tokens.target);
  }

  std::vector<InterventionPoint> selected_points() const {
    std::string text = fields_.required_string("point");
    if (fields_.has("positions")) text += "@" + fields_.required_string("positions");
    std::vector<InterventionPoint> found = parse_pair_points(architecture_, text);
    for (const InterventionPoint& selected : found) {
      require_positions(selected.where, positions_of(selected.point), text);
    }
    return found;
  }
  std::vector<InterventionPoint> selected_patterns() const {
    return parse_pair_patterns(architecture_, fields_.required_string("point"));
  }

  void ablate() {
    fields_.expect_only({"kind", "point", "positions"});
    for (const InterventionPoint& selected : selected_points()) add(selected, SetZero{});
  }

  void scale() {
    fields_.expect_only({"kind", "point", "positions", "factor"});
    const float factor = fields_.required_float("factor");
    for (const InterventionPoint& selected : selected_points()) add(selected, ScaleBy{factor});
  }

  void cut() {
    fields_.expect_only({"kind", "point", "edges", "renormalise"});
    const CutEdges cut = read_cut(fields_);
    for (const InterventionPoint& pattern : selected_patterns()) {
      const AttentionSite kind = site_of_pattern(pattern.point);
      for (const CutEdges::Edge& edge : cut.edges) {
        require(
            edge.query >= 0 && edge.query < queries(kind) && edge.key >= 0 && edge.key < keys(kind),
            ErrorCode::invalid_argument,
            "there is no edge from {} to {}: {} queries attend to {} keys", edge.query, edge.key,
            queries(kind), keys(kind));
      }
      add_cut(pattern, cut);
    }
  }

  std::int64_t queries(AttentionSite kind) const {
    return std::ssize(kind == encoder_site ? source_.tokens.source : source_.tokens.target);
  }
  std::int64_t keys(AttentionSite kind) const {
    return std::ssize(kind == decoder_site ? source_.tokens.target : source_.tokens.source);
  }

  static const TextWord& word_at(const std::vector<TextWord>& words, std::int64_t index,
                                 const char* field) {
    require(index >= 0 && index < std::ssize(words), ErrorCode::invalid_argument,
            "\"{}\" is word {}, and there are words 0 to {}", field, index, words.size() - 1);
    return words[static_cast<std::size_t>(index)];
  }

  // From the positions that write the word, or in the encoder those that read it, to the tokens of
  // the other word.
  void cut_words() {
    fields_.expect_only({"kind", "point", "target", "source", "renormalise"});
    const std::vector<TextWord> source_words =
        source_.model.words(PairSide::source, source_.tokens.source);
    const std::vector<TextWord> target_words =
        source_.model.words(PairSide::target, source_.tokens.target);
    const std::int64_t from = fields_.required_integer("target");
    const std::int64_t to = fields_.required_integer("source");
    for (const InterventionPoint& pattern : selected_patterns()) {
      const AttentionSite kind = site_of_pattern(pattern.point);
      const bool is_encoder = kind == encoder_site;
      const TextWord& query = word_at(is_encoder ? source_words : target_words, from, "target");
      const TextWord& key =
          word_at(kind == decoder_site ? target_words : source_words, to, "source");
      const std::int64_t back = !is_encoder && query.begin > 0 ? 1 : 0;
      CutEdges cut{.edges = {}, .rest = read_rest(fields_)};
      for (std::int64_t t = query.begin - back; t < query.end - back; ++t) {
        for (std::int64_t s = key.begin; s < key.end; ++s) {
          if (kind != decoder_site || s <= t) cut.edges.push_back({t, s});
        }
      }
      require(!cut.edges.empty(), ErrorCode::invalid_argument,
              "word {} of the target does not see word {}, which comes later", from, to);
      add_cut(pattern, cut);
    }
  }

  void mask_future() {
    fields_.expect_only({"kind", "point"});
    for (InterventionPoint pattern : selected_patterns()) {
      require(site_of_pattern(pattern.point) == encoder_site, ErrorCode::invalid_argument,
              "\"mask_future\" gives the encoder a causal mask: \"point\" must be encoder, "
              "encoder.L0 or encoder.L0H1, not \"{}\"",
              fields_.required_string("point").substr(0, 40));
      pattern.point.kind = PointKind::scores;
      add(pattern, HideFuture{});
    }
  }

  void swap() {
    fields_.expect_only({"kind", "point", "positions", "from"});
    const PairPass& other =
        *source_.pairs.use_of_two_texts(fields_.required_string("from"), "values are swapped").pair;
    require(std::ssize(other.tokens().source) == std::ssize(source_.tokens.source) &&
                std::ssize(other.tokens().target) == std::ssize(source_.tokens.target),
            ErrorCode::invalid_argument,
            "the other pair has {} and {} tokens, these texts {} and {}: swaps need as many",
            other.sources(), other.targets(), source_.tokens.source.size(),
            source_.tokens.target.size());
    const auto replay = [&other](Probe& probe) { other.replay(probe); };
    for (const InterventionPoint& selected : selected_points()) {
      add(selected, SetZero{});  // until the values are there
      if (recorded_.want(&other, replay, selected.point, out_.size() - 1, RecordedValues::All{})) {
        source_.take_memory(value_bytes(selected.point));
      }
    }
  }

  // Of a point of these texts.
  std::int64_t value_bytes(const Point& point) const {
    const PointShape shape = point_shape(architecture_.of(point.site), point.kind);
    const std::int64_t rows = positions_of(point);
    const std::int64_t heads = shape.has_heads || shape.is_plane ? shape.heads : 1;
    const bool is_cross = is_cross_point(point.kind);
    const std::int64_t columns = !shape.is_plane ? shape.width
                                 : is_cross      ? std::ssize(source_.tokens.source)
                                                 : rows;
    return tensor_bytes(heads * rows * columns * std::int64_t{sizeof(float)});
  }

  const Fields& fields_;
  const PairInterventionSource& source_;
  const Architecture& architecture_;
  std::vector<Intervention>& out_;
  RecordedValues& recorded_;
};

}  // namespace

std::shared_ptr<Interventions> read_pair_interventions(const Json& list,
                                                       const PairInterventionSource& source) {
  RecordedValues recorded;
  std::vector<Intervention> interventions =
      read_intervention_list(list, [&](const Fields& fields, std::vector<Intervention>& out) {
        PairReader(fields, source, out, recorded).read();
      });
  if (interventions.empty()) return nullptr;
  recorded.fill(interventions, source.stop);
  return std::make_shared<Interventions>(source.model.architecture(), std::move(interventions));
}

}  // namespace heed::server
