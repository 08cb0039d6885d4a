#include "microscope/intervene/pair_intervention_text.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "microscope/traces/point_names.h"

namespace heed {
namespace {

// "cross.L1H2" as cross and "L1H2"; "cross" as cross and nothing.
struct SiteAndRest {
  AttentionSite site;
  std::string_view rest;
};
std::optional<SiteAndRest> split_site(std::string_view text, const Architecture& architecture) {
  for (const AttentionSite site : sites_of(architecture)) {
    const std::string_view name = site_name(site);
    if (!text.starts_with(name)) continue;
    if (text.size() == name.size()) return SiteAndRest{site, {}};
    if (text[name.size()] == '.') return SiteAndRest{site, text.substr(name.size() + 1)};
  }
  return std::nullopt;
}

bool is_by_index(std::string_view text) {
  return text.size() > 1 && text[0] == 'L' && text[1] >= '0' && text[1] <= '9';
}

PointKind cross_kind_of(PointKind kind, std::string_view text) {
  switch (kind) {
    case PointKind::query: return PointKind::cross_query;
    case PointKind::key: return PointKind::cross_key;
    case PointKind::value: return PointKind::cross_value;
    case PointKind::scores: return PointKind::cross_scores;
    case PointKind::pattern: return PointKind::cross_pattern;
    case PointKind::mixed_values: return PointKind::cross_mixed_values;
    case PointKind::attention_out: return PointKind::cross_attention_out;
    default: break;
  }
  fail(ErrorCode::invalid_argument,
       "'{}': cross-attention has heads and their points .q, .k, .v, .z, .scores and .pattern: "
       "write cross.L1H2, cross.L1H2.pattern or cross.L1",
       text);
}

// The decoder as it would be if its cross-attention were attention to itself, so that the parser of
// one stack checks layers, heads and points of it.
StackSpecification cross_as_self(const StackSpecification& decoder) {
  StackSpecification stack = decoder;
  stack.block.attention = *decoder.block.cross_attention;
  return stack;
}

// The parser of one stack complains of 'L9H0' and suggests 'L1H0': prefixes are put back.
std::vector<InterventionPoint> parse_in_stack(const StackSpecification& stack,
                                              std::string_view text, std::string_view prefix) {
  try {
    return parse_points(stack, text);
  } catch (const Error& error) {
    fail(error.code(), "{} (of the {})", error.what(), prefix);
  }
}

std::vector<InterventionPoint> points_at_site(const Architecture& architecture,
                                              const SiteAndRest& split, std::string_view text) {
  const StackSpecification& stack = architecture.of(split.site.stack);
  const std::string_view name = site_name(split.site);
  std::vector<InterventionPoint> points;
  if (split.site == cross_site) {
    for (InterventionPoint& each : parse_in_stack(cross_as_self(stack), split.rest, name)) {
      // A layer is its attention alone.
      if (each.point.kind == PointKind::feed_forward_out) continue;
      require(each.where.neurons.empty(), ErrorCode::invalid_argument,
              "'{}': neurons belong to a stack: write decoder.{}", text, split.rest);
      each.point.kind = cross_kind_of(each.point.kind, text);
      points.push_back(std::move(each));
    }
  } else {
    points = parse_in_stack(stack, split.rest, name);
    const bool is_layer = split.rest.find_first_of(".HN") == std::string_view::npos;
    if (is_layer && stack.block.cross_attention) {
      InterventionPoint across = points.front();
      across.point.kind = PointKind::cross_attention_out;
      points.push_back(std::move(across));
    }
  }
  require(!points.empty(), ErrorCode::invalid_argument,
          "'{}': cross-attention has no such branch: write cross.L1, or decoder.L1.mlp", text);
  for (InterventionPoint& each : points) {
    each.point.site = split.site.stack;
    require_point(architecture, each.point);
  }
  return points;
}

// "L1.cross" of a decoder as "L1" of cross-attention.
std::optional<std::string> cross_branch(const SiteAndRest& split) {
  constexpr std::string_view suffix = ".cross";
  const std::size_t at = split.rest.find('@');
  const std::string_view name = split.rest.substr(0, at);
  if (split.site != decoder_site || !name.ends_with(suffix)) return std::nullopt;
  std::string layer(name.substr(0, name.size() - suffix.size()));
  if (at != std::string_view::npos) layer += split.rest.substr(at);
  return layer;
}

}  // namespace

std::vector<InterventionPoint> parse_pair_points(const Architecture& architecture,
                                                 std::string_view text) {
  const auto split = split_site(text, architecture);
  if (split && is_by_index(split->rest)) {
    if (const auto layer = cross_branch(*split)) {
      return points_at_site(architecture, {cross_site, *layer}, text);
    }
    return points_at_site(architecture, *split, text);
  }
  require(!is_by_index(text), ErrorCode::invalid_argument,
          "'{}' is in both stacks: write encoder.{}, decoder.{} or, of attention to the source, "
          "cross.{}",
          text, text, text, text);
  const std::size_t at = text.find('@');
  std::vector<InterventionPoint> found;
  // Positions are read by the parser of one stack.
  Selection where;
  if (at != std::string_view::npos) {
    where = parse_points(architecture.decoder(), fmt::format("resid_pre0{}", text.substr(at)))
                .front()
                .where;
  }
  for (const Point& point : points_named(text.substr(0, at), architecture)) {
    found.push_back({.point = point, .where = where});
  }
  return found;
}

std::vector<InterventionPoint> parse_pair_patterns(const Architecture& architecture,
                                                   std::string_view text) {
  std::vector<InterventionPoint> patterns;
  const auto split = split_site(text, architecture);
  if (split && split->rest.empty()) {
    for (std::int64_t layer = 0; layer < architecture.of(split->site.stack).layers; ++layer) {
      patterns.push_back({.point = pattern_point(split->site, layer), .where = {}});
    }
    return patterns;
  }
  for (InterventionPoint& selected : parse_pair_points(architecture, text)) {
    require(selected.point.layer >= 0 && selected.where.neurons.empty(),
            ErrorCode::invalid_argument,
            "'{}' has no attention pattern: name a head or a layer, such as cross.L1H2 or cross.L1",
            text);
    const bool is_cross = is_cross_point(selected.point.kind);
    // "decoder.L1" means its attention to itself; cross-attention is named by cross.L1.
    if (is_cross && split && split->site == decoder_site && !cross_branch(*split)) {
      continue;
    }
    selected.point.kind = is_cross ? PointKind::cross_pattern : PointKind::pattern;
    const bool is_known = std::ranges::any_of(
        patterns, [&](const InterventionPoint& known) { return known.point == selected.point; });
    if (!is_known) patterns.push_back(std::move(selected));
  }
  return patterns;
}

PairEdges parse_pair_edges(const Architecture& architecture, std::string_view text) {
  const HeadEdges parsed = parse_edges(text);
  return {.patterns = parse_pair_patterns(architecture, parsed.head), .edges = parsed.edges};
}

}  // namespace heed
