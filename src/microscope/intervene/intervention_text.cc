#include "microscope/intervene/intervention_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "microscope/traces/point_names.h"

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

void check_layer(const StackSpecification& config, std::int64_t layer, std::string_view text) {
  require(layer < config.layers, ErrorCode::invalid_argument,
          "'{}': the model has layers 0 to {}; did you mean 'L{}'?", text, config.layers - 1,
          config.layers - 1);
}

void check_head(const StackSpecification& config, std::int64_t layer, std::int64_t head,
                std::string_view text) {
  require(head < config.heads(), ErrorCode::invalid_argument,
          "'{}': layer {} has heads 0 to {}; did you mean 'L{}H{}'?", text, layer,
          config.heads() - 1, layer, config.heads() - 1);
}

// The point of a head that a suffix such as ".q" names; its mixed values without a suffix.
PointKind head_point(Scanner& scanner, std::string_view text) {
  if (scanner.at_end()) return PointKind::mixed_values;
  constexpr std::pair<std::string_view, PointKind> parts[] = {{".rot_q", PointKind::rotated_query},
                                                              {".rot_k", PointKind::rotated_key},
                                                              {".q_input", PointKind::query_input},
                                                              {".k_input", PointKind::key_input},
                                                              {".v_input", PointKind::value_input},
                                                              {".q", PointKind::query},
                                                              {".k", PointKind::key},
                                                              {".v", PointKind::value},
                                                              {".z", PointKind::mixed_values},
                                                              {".scores", PointKind::scores},
                                                              {".pattern", PointKind::pattern},
                                                              {".result", PointKind::head_results}};
  for (const auto& [name, kind] : parts) {
    if (scanner.take(name) && scanner.at_end()) return kind;
  }
  fail(ErrorCode::invalid_argument,
       "'{}': a head's points are .q, .k, .v, .rot_q, .rot_k, .q_input, .k_input, .v_input, .z, "
       ".scores, .pattern and .result",
       text);
}

// Parses L2H3, L2H3.q, L2N17, L2, L2.attn, L2.mlp; returns nothing for other texts.
std::vector<InterventionPoint> points_by_index(const StackSpecification& config,
                                               std::string_view text) {
  Scanner scanner(text);
  if (!scanner.take("L")) return {};
  const auto layer = scanner.number();
  if (!layer) return {};
  const auto halves = [&](const std::vector<PointKind>& kinds) {
    check_layer(config, *layer, text);
    std::vector<InterventionPoint> found;
    for (const PointKind kind : kinds) found.push_back({.point = {kind, *layer}, .where = {}});
    return found;
  };
  if (scanner.at_end()) return halves({PointKind::attention_out, PointKind::feed_forward_out});
  if (scanner.take(".attn")) {
    return scanner.at_end() ? halves({PointKind::attention_out}) : std::vector<InterventionPoint>{};
  }
  if (scanner.take(".mlp")) {
    return scanner.at_end() ? halves({PointKind::feed_forward_out})
                            : std::vector<InterventionPoint>{};
  }
  const bool is_head = scanner.take("H");
  if (!is_head && !scanner.take("N")) return {};
  const auto index = scanner.number();
  if (!index) return {};
  if (is_head) {
    check_layer(config, *layer, text);
    const Point point{head_point(scanner, text), *layer};
    require_point(config, point);
    check_head(config, point.layer, *index, text);
    // Of keys and values, the one that this head of queries reads.
    const std::int64_t queries_of_each = config.heads() / point_shape(config, point.kind).heads;
    return {{.point = point, .where = {.heads = {*index / queries_of_each}}}};
  }
  if (!scanner.at_end()) return {};
  check_layer(config, *layer, text);
  require(*index < config.feed_forward(), ErrorCode::invalid_argument,
          "'{}': layer {} has neurons 0 to {}", text, *layer, config.feed_forward() - 1);
  return {{.point = {PointKind::neurons_post, *layer}, .where = {.neurons = {*index}}}};
}

void read_positions(std::string_view text, Selection& where) {
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
}

}  // namespace

std::vector<InterventionPoint> parse_points(const StackSpecification& config,
                                            std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  std::vector<InterventionPoint> found = points_by_index(config, name);
  if (found.empty()) {
    for (const Point& point : points_named(name, config)) {
      found.push_back({.point = point, .where = {}});
    }
  }
  if (at != std::string_view::npos) {
    for (InterventionPoint& selected : found) read_positions(text.substr(at + 1), selected.where);
  }
  return found;
}

std::vector<InterventionPoint> pattern_points(std::vector<InterventionPoint> points,
                                              std::string_view text) {
  std::vector<InterventionPoint> patterns;
  for (InterventionPoint& selected : points) {
    require(selected.point.layer >= 0 && selected.where.neurons.empty(),
            ErrorCode::invalid_argument,
            "'{}' has no attention pattern: name a head or a block, such as L2H3 or L2", text);
    selected.point.kind = PointKind::pattern;
    const bool is_known = std::ranges::any_of(
        patterns, [&](const InterventionPoint& known) { return known.point == selected.point; });
    if (!is_known) patterns.push_back(std::move(selected));
  }
  return patterns;
}

void require_positions(const Selection& where, std::int64_t positions, std::string_view text) {
  const bool is_open = where.last_position == Selection{}.last_position;
  require(where.first_position < positions && (is_open || where.last_position < positions),
          ErrorCode::invalid_argument, "'{}' lies outside the text, which has positions 0 to {}",
          text, positions - 1);
}

void require_positions(const HeadEdges& edges, std::int64_t positions, std::string_view text) {
  for (const CutEdges::Edge& edge : edges.edges) {
    require(std::max(edge.query, edge.key) < positions, ErrorCode::invalid_argument,
            "'{}': the edge {}>{} lies outside the text, which has positions 0 to {}", text,
            edge.query, edge.key, positions - 1);
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

}  // namespace heed
