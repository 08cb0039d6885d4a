#include "microscope/intervene/intervention_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "microscope/traces/point_names.h"
#include "microscope/traces/recorded_pass.h"

namespace heed {
namespace {

// Parses a text from its front.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }
  std::optional<std::int64_t> number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
};

// A text without its positions: "cross.L1H2" as the site cross and "L1H2"; "cross" as cross and
// nothing. In a model of one stack, "L1H2" is at its only site.
struct SiteAndRest {
  AttentionSite site;
  std::string_view rest;
};

bool is_by_index(std::string_view text) {
  return text.size() > 1 && text[0] == 'L' && text[1] >= '0' && text[1] <= '9';
}

std::optional<SiteAndRest> split_site(std::string_view name, const Architecture& architecture) {
  for (const AttentionSite site : sites_of(architecture)) {
    const std::string_view prefix = site_name(site);
    if (name == prefix) return SiteAndRest{site, {}};
    if (architecture.is_encoder_decoder() && name.starts_with(prefix) &&
        name.substr(prefix.size()).starts_with('.')) {
      return SiteAndRest{site, name.substr(prefix.size() + 1)};
    }
  }
  if (!architecture.is_encoder_decoder()) return SiteAndRest{only_site, name};
  return std::nullopt;
}

// The point of a head that a suffix such as ".q" names; its mixed values without a suffix.
PointKind head_point(Scanner& scanner, AttentionSite site, std::string_view text) {
  struct HeadPart {
    std::string_view name;
    PointKind self;
    std::optional<PointKind> cross{};
  };
  constexpr HeadPart parts[] = {{".rot_q", PointKind::rotated_query},
                                {".rot_k", PointKind::rotated_key},
                                {".q_input", PointKind::query_input},
                                {".k_input", PointKind::key_input},
                                {".v_input", PointKind::value_input},
                                {".q", PointKind::query, PointKind::cross_query},
                                {".k", PointKind::key, PointKind::cross_key},
                                {".v", PointKind::value, PointKind::cross_value},
                                {".z", PointKind::mixed_values, PointKind::cross_mixed_values},
                                {".scores", PointKind::scores, PointKind::cross_scores},
                                {".pattern", PointKind::pattern, PointKind::cross_pattern},
                                {".result", PointKind::head_results}};
  const bool is_cross = site == cross_site;
  if (scanner.at_end()) return is_cross ? PointKind::cross_mixed_values : PointKind::mixed_values;
  for (const HeadPart& part : parts) {
    if (!scanner.take(part.name) || !scanner.at_end()) continue;
    if (!is_cross) return part.self;
    if (part.cross) return *part.cross;
  }
  require(!is_cross, ErrorCode::invalid_argument,
          "'{}': a head of cross-attention has the points .q, .k, .v, .z, .scores and .pattern",
          text);
  fail(ErrorCode::invalid_argument,
       "'{}': a head's points are .q, .k, .v, .rot_q, .rot_k, .q_input, .k_input, .v_input, .z, "
       ".scores, .pattern and .result",
       text);
}

// Parses the notation by index at one site.
class IndexedPoints {
 public:
  IndexedPoints(const Architecture& architecture, AttentionSite site, std::string_view text)
      : architecture_(architecture),
        stack_(architecture.of(site.stack)),
        site_(site),
        prefix_(architecture.is_encoder_decoder() ? std::string(site_name(site)) + "." : ""),
        text_(text) {}

  // Of "L2H3", "L2H3.q", "L2N17", "L2", "L2.attn", "L2.cross", "L2.mlp"; none for other texts.
  std::vector<InterventionPoint> parse(std::string_view rest) {
    Scanner scanner(rest);
    if (!scanner.take("L")) return {};
    const auto layer = scanner.number();
    if (!layer) return {};
    layer_ = *layer;
    if (scanner.take("H")) {
      const auto head = scanner.number();
      return head ? of_head(*head, scanner) : std::vector<InterventionPoint>{};
    }
    if (scanner.take("N")) {
      const auto neuron = scanner.number();
      return neuron && scanner.at_end() ? of_neuron(*neuron) : std::vector<InterventionPoint>{};
    }
    return of_branches(scanner);
  }

 private:
  std::vector<InterventionPoint> of_head(std::int64_t head, Scanner& scanner) const {
    check_layer();
    const Point point{head_point(scanner, site_, text_), layer_, site_.stack};
    require_point(architecture_, point);
    const std::int64_t heads = attention_of(architecture_, site_).query_heads;
    require(head < heads, ErrorCode::invalid_argument,
            "'{}': layer {} has heads 0 to {}; did you mean '{}L{}H{}'?", text_, layer_, heads - 1,
            prefix_, layer_, heads - 1);
    // Of keys and values, the one that this head of queries reads.
    const std::int64_t queries_of_each = heads / point_shape(stack_, point.kind).heads;
    return {{.point = point, .where = {.heads = {head / queries_of_each}}}};
  }

  std::vector<InterventionPoint> of_neuron(std::int64_t neuron) const {
    require(site_ != cross_site, ErrorCode::invalid_argument,
            "'{}': neurons belong to a stack: write decoder.L{}N{}", text_, layer_, neuron);
    check_layer();
    require(neuron < stack_.feed_forward(), ErrorCode::invalid_argument,
            "'{}': layer {} has neurons 0 to {}", text_, layer_, stack_.feed_forward() - 1);
    return {
        {.point = {PointKind::neurons_post, layer_, site_.stack}, .where = {.neurons = {neuron}}}};
  }

  std::vector<InterventionPoint> of_branches(Scanner& scanner) const {
    const bool all = scanner.at_end();
    const bool attention = scanner.take(".attn"), cross = scanner.take(".cross");
    const bool feed_forward = scanner.take(".mlp");
    if (!scanner.at_end()) return {};
    check_layer();
    std::vector<InterventionPoint> found;
    const auto add = [&](PointKind kind) {
      found.push_back({.point = {kind, layer_, site_.stack}, .where = {}});
    };
    const bool has_cross = stack_.block.cross_attention.has_value();
    if (site_ == cross_site) {
      if (!feed_forward) add(PointKind::cross_attention_out);
    } else {
      if (all || attention) add(PointKind::attention_out);
      if (all || feed_forward) add(PointKind::feed_forward_out);
      if ((all || cross) && has_cross) add(PointKind::cross_attention_out);
    }
    require(!found.empty(), ErrorCode::invalid_argument,
            "'{}' has no such branch: cross.L1 is attention to the source, decoder.L1.mlp a "
            "feed-forward layer",
            text_);
    return found;
  }

  void check_layer() const {
    std::string owner = "the model";
    if (site_.stack != StackSite::only) owner = fmt::format("the {}", site_name(site_));
    if (site_ == cross_site) owner = "cross-attention";
    require(layer_ < stack_.layers, ErrorCode::invalid_argument,
            "'{}': {} has layers 0 to {}; did you mean '{}L{}'?", text_, owner, stack_.layers - 1,
            prefix_, stack_.layers - 1);
  }

  const Architecture& architecture_;
  const StackSpecification& stack_;
  AttentionSite site_;
  std::string prefix_;
  std::string_view text_;
  std::int64_t layer_ = 0;
};

// A text's name, and the positions after its @.
struct NameAndPositions {
  std::string_view name;
  Selection where;
};
NameAndPositions split_positions(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), parse_positions(text.substr(at + 1))};
}

}  // namespace

Selection parse_positions(std::string_view text) {
  Selection where;
  Scanner scanner(text);
  const auto first = scanner.number();
  require(first.has_value(), ErrorCode::invalid_argument,
          "'@{}' is not a position range; write @5, @3-7 or @4-", text);
  where.first_position = where.last_position = *first;
  if (scanner.take("-")) {
    where.last_position =
        scanner.at_end() ? Selection{}.last_position : scanner.number().value_or(-1);
  }
  require(scanner.at_end() && where.last_position >= where.first_position,
          ErrorCode::invalid_argument, "'@{}' is not a position range; write @5, @3-7 or @4-",
          text);
  return where;
}

std::vector<InterventionPoint> parse_points(const Architecture& architecture,
                                            std::string_view text) {
  const auto [name, where] = split_positions(text);
  const auto split = split_site(name, architecture);
  std::vector<InterventionPoint> found;
  if (split) found = IndexedPoints(architecture, split->site, text).parse(split->rest);
  require(split || !is_by_index(name), ErrorCode::invalid_argument,
          "'{}' is in both stacks: write encoder.{}, decoder.{} or, of attention to the source, "
          "cross.{}",
          text, text, text, text);
  if (found.empty()) {
    for (const Point& point : points_named(name, architecture)) {
      found.push_back({.point = point, .where = {}});
    }
  }
  for (InterventionPoint& selected : found) {
    selected.where.first_position = where.first_position;
    selected.where.last_position = where.last_position;
  }
  return found;
}

std::vector<InterventionPoint> pattern_points(const Architecture& architecture,
                                              std::string_view text) {
  const auto [name, where] = split_positions(text);
  const auto split = split_site(name, architecture);
  std::vector<InterventionPoint> patterns;
  if (split && split->rest.empty() && !name.empty()) {
    for (std::int64_t layer = 0; layer < architecture.of(split->site.stack).layers; ++layer) {
      patterns.push_back({.point = pattern_point(split->site, layer), .where = where});
    }
    return patterns;
  }
  const bool is_block = split && is_by_index(split->rest) &&
                        split->rest.find_first_of(".H") == std::string_view::npos;
  for (InterventionPoint& selected : parse_points(architecture, text)) {
    const Point& point = selected.point;
    const bool is_cross = is_cross_point(point.kind);
    if (point.kind == PointKind::feed_forward_out) continue;
    // A block of the decoder means its attention to itself.
    if (is_block && is_cross && split->site != cross_site) continue;
    require(point.layer >= 0 && selected.where.neurons.empty(), ErrorCode::invalid_argument,
            "'{}' has no attention pattern: name a head or a block, such as {}", text,
            architecture.is_encoder_decoder() ? "cross.L1H2 or cross.L1" : "L2H3 or L2");
    selected.point.kind = is_cross ? PointKind::cross_pattern : PointKind::pattern;
    const bool is_known = std::ranges::any_of(
        patterns, [&](const InterventionPoint& known) { return known.point == selected.point; });
    if (!is_known) patterns.push_back(std::move(selected));
  }
  require(!patterns.empty(), ErrorCode::invalid_argument,
          "'{}' has no attention pattern: name a head or a block, such as {}", text,
          architecture.is_encoder_decoder() ? "cross.L1H2 or cross.L1" : "L2H3 or L2");
  return patterns;
}

std::int64_t TextLengths::rows(const Point& point) const {
  return has_source_rows(point) ? source : target;
}

void require_positions(const InterventionPoint& selected, const TextLengths& lengths,
                       std::string_view text) {
  const Selection& where = selected.where;
  const std::int64_t positions = lengths.rows(selected.point);
  const bool is_open = where.last_position == Selection{}.last_position;
  require(where.first_position < positions && (is_open || where.last_position < positions),
          ErrorCode::invalid_argument,
          "there is no position {}: '{}' lies outside the {}, which has positions 0 to {}",
          is_open ? where.first_position : where.last_position, text,
          has_source_rows(selected.point) ? "source" : "text", positions - 1);
}

void require_edges(const InterventionPoint& pattern, const std::vector<CutEdges::Edge>& edges,
                   const TextLengths& lengths, std::string_view text) {
  const AttentionSite site = site_of_pattern(pattern.point);
  const std::int64_t queries = lengths.queries(site), keys = lengths.keys(site);
  for (const CutEdges::Edge& edge : edges) {
    const auto check_end = [&](std::int64_t position, std::int64_t count, bool of_source) {
      require(position >= 0 && position < count, ErrorCode::invalid_argument,
              "there is no position {}: '{}' has the edge {}>{}, which lies outside the {}, which "
              "has positions 0 to {}",
              position, text, edge.query, edge.key, of_source ? "source" : "text", count - 1);
    };
    check_end(edge.query, queries, site == encoder_site);
    check_end(edge.key, keys, site == encoder_site || site == cross_site);
  }
}

HeadEdges parse_edges(std::string_view text) {
  const auto expect = [&](bool right) {
    require(right, ErrorCode::invalid_argument,
            "'{}' is not a list of edges; write a head and, for each, query > key: L1H0:7>3 or "
            "L1H0:7>3,7>4",
            text);
  };
  const std::size_t colon = text.find(':');
  expect(colon != std::string_view::npos && colon > 0);
  HeadEdges found{.head = std::string(text.substr(0, colon)), .edges = {}};
  Scanner scanner(text.substr(colon + 1));
  do {
    const auto query = scanner.number();
    expect(query && scanner.take(">"));
    const auto key = scanner.number();
    expect(key.has_value());
    found.edges.push_back({*query, *key});
  } while (scanner.take(","));
  expect(scanner.at_end());
  return found;
}

std::vector<CutEdges::Edge> edges_between_words(const Architecture& architecture,
                                                AttentionSite site, const Texts& texts,
                                                const WordsOf& words, std::int64_t query,
                                                std::int64_t key) {
  const auto word_at = [&](PairSide side, std::int64_t index) {
    const bool is_source = side == PairSide::source;
    const std::vector<TextWord> all = words(side, is_source ? texts.source : texts.target);
    require(index >= 0 && index < std::ssize(all), ErrorCode::invalid_argument,
            "there is no word {} of the {}: it has words 0 to {}", index,
            is_source ? "source" : "text", all.size() - 1);
    return all[static_cast<std::size_t>(index)];
  };
  const bool of_source = site == encoder_site;
  const bool to_source = of_source || site == cross_site;
  const TextWord from = word_at(of_source ? PairSide::source : PairSide::target, query);
  const TextWord to = word_at(to_source ? PairSide::source : PairSide::target, key);
  const bool is_causal = attention_of(architecture, site).mask.kind != MaskKind::full;
  // The position before a token writes it.
  const bool writes = architecture.of(site.stack).is_causal();
  const std::int64_t back = writes && from.begin > 0 ? 1 : 0;
  std::vector<CutEdges::Edge> edges;
  for (std::int64_t t = from.begin - back; t < from.end - back; ++t) {
    for (std::int64_t s = to.begin; s < to.end; ++s) {
      if (!is_causal || s <= t) edges.push_back({t, s});
    }
  }
  require(!edges.empty(), ErrorCode::invalid_argument,
          "word {} does not see word {}, which comes later", query, key);
  return edges;
}

PointAndValue parse_assignment(std::string_view text, std::string_view example) {
  const std::size_t equals = text.rfind('=');
  require(equals != std::string_view::npos && equals > 0 && equals + 1 < text.size(),
          ErrorCode::invalid_argument, "'{}' is not POINT=VALUE; write {}", text, example);
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

float parse_factor(std::string_view text) {
  float factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  require(is_whole && std::isfinite(factor), ErrorCode::invalid_argument,
          "'{}' is not a finite number such as 0.5 or -1", text);
  return factor;
}

SetMask parse_mask(std::string_view text) {
  if (text == "causal") return {SetMask::Kind::causal};
  require(text == "none", ErrorCode::invalid_argument, "the mask is '{}', expected causal or none",
          text.substr(0, 40));
  return {SetMask::Kind::none};
}

}  // namespace heed
