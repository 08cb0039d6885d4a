#include "microscope/traces/point_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "microscope/traces/capture.h"

namespace heed {
namespace {

struct ShortName {
  std::string_view name;
  std::string_view point;  // without "blocks.l." if it is in a block
  bool in_block = true;
};

constexpr std::array<ShortName, 35> short_names{{{"resid_pre", "hook_resid_pre"},
                                                 {"resid_mid", "hook_resid_mid"},
                                                 {"resid_post", "hook_resid_post"},
                                                 {"attn_out", "hook_attn_out"},
                                                 {"mlp_out", "hook_mlp_out"},
                                                 {"attn_in", "hook_attn_in"},
                                                 {"q_input", "hook_q_input"},
                                                 {"k_input", "hook_k_input"},
                                                 {"v_input", "hook_v_input"},
                                                 {"mlp_in", "hook_mlp_in"},
                                                 {"q", "attn.hook_q"},
                                                 {"query", "attn.hook_q"},
                                                 {"k", "attn.hook_k"},
                                                 {"key", "attn.hook_k"},
                                                 {"v", "attn.hook_v"},
                                                 {"value", "attn.hook_v"},
                                                 {"rot_q", "attn.hook_rot_q"},
                                                 {"rot_k", "attn.hook_rot_k"},
                                                 {"z", "attn.hook_z"},
                                                 {"attn_scores", "attn.hook_attn_scores"},
                                                 {"attn_logits", "attn.hook_attn_scores"},
                                                 {"pattern", "attn.hook_pattern"},
                                                 {"attn", "attn.hook_pattern"},
                                                 {"result", "attn.hook_result"},
                                                 {"pre", "mlp.hook_pre"},
                                                 {"mlp_pre", "mlp.hook_pre"},
                                                 {"pre_linear", "mlp.hook_pre_linear"},
                                                 {"post", "mlp.hook_post"},
                                                 {"mlp_post", "mlp.hook_post"},
                                                 {"embed", "hook_embed", false},
                                                 {"pos_embed", "hook_pos_embed", false},
                                                 {"scale", "ln_final.hook_scale", false},
                                                 {"normalized", "ln_final.hook_normalized", false},
                                                 {"ln_final", "ln_final.hook_normalized", false},
                                                 {"logits", "unembed.hook_out", false}}};

std::vector<Point> matching(std::string_view pattern, const std::vector<Point>& every) {
  std::vector<Point> points;
  for (const Point& point : every) {
    if (matches_glob(point_name(point), pattern)) points.push_back(point);
  }
  return points;
}

// "k6" as the pattern "blocks.6.attn.hook_k", "k" as "blocks.*.attn.hook_k"; empty where the name
// is no short one.
std::string short_name_pattern(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789") + 1;
  const std::string_view digits = name.substr(end);
  for (const ShortName& known : short_names) {
    if (known.name != name.substr(0, end)) continue;
    if (!known.in_block) return digits.empty() ? std::string(known.point) : std::string{};
    return fmt::format("blocks.{}.{}", digits.empty() ? "*" : digits, known.point);
  }
  return {};
}

// The points of a stack that lacks none.
std::vector<Point> points_of_any(std::int64_t layers) {
  StackSpecification stack;
  stack.layers = layers;
  stack.block.norm.placement = NormPlacement::around;
  stack.block.attention.query_key_norm = true;
  stack.block.feed_forward.gated = true;
  return all_points(stack);
}

std::string_view reason_of_absence(PointKind kind) {
  switch (kind) {
    case PointKind::position: return "it has no table of position embeddings";
    case PointKind::rotated_query:
    case PointKind::rotated_key:
      return "its queries and keys do not change before attention: see attn.hook_q and attn.hook_k";
    case PointKind::neurons_linear: return "its feed-forward layers are not gated";
    case PointKind::norm_1_scale:
    case PointKind::norm_1_normalized: return "its branches read the stream without a norm";
    case PointKind::norm_2_scale:
    case PointKind::norm_2_normalized: return "feed-forward has no norm of its own before it";
    case PointKind::attention_out_scale:
    case PointKind::attention_out_normalized:
    case PointKind::feed_forward_out_scale:
    case PointKind::feed_forward_out_normalized:
      return "its branches add what they give, not the norm of it";
    case PointKind::residual_mid:
      return "attention and feed-forward read the same stream, so that none lies between them";
    default: return "its description leaves it out";
  }
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "'" + names[i] + "'";
  }
  return text;
}

constexpr std::string_view cross_prefix = "cross.";

// "pattern1" as "pattern" and "1".
struct NameAndLayer {
  std::string_view name;
  std::string_view layer;  // empty: every one

  explicit NameAndLayer(std::string_view text)
      : name(text.substr(0, text.find_last_not_of("0123456789") + 1)),
        layer(text.substr(name.size())) {}
  std::string layer_glob() const { return layer.empty() ? "*" : std::string(layer); }
};

// Short names of cross-attention: what follows "cross_attn." of its points.
std::string cross_glob(std::string_view text) {
  const NameAndLayer wanted(text);
  if (wanted.name == "out")
    return fmt::format("decoder.{}.hook_cross_attn_out", wanted.layer_glob());
  const std::string_view point = wanted.name == "attn" ? "pattern" : wanted.name;
  return fmt::format("decoder.{}.cross_attn.hook_{}", wanted.layer_glob(), point);
}

// Globs that a text may stand for, the most literal first.
std::vector<std::string> globs_of(std::string_view text) {
  std::vector<std::string> globs{std::string(text)};
  if (text.starts_with(cross_prefix)) {
    globs.push_back(cross_glob(text.substr(cross_prefix.size())));
    return globs;
  }
  for (const StackSite site : {StackSite::encoder, StackSite::decoder}) {
    const std::string_view prefix = site_prefix(site);
    if (!text.starts_with(prefix)) continue;
    const NameAndLayer wanted(text.substr(prefix.size()));
    const std::string layer = wanted.layer_glob();
    for (const char* const between : {"", "hook_", "attn.", "attn.hook_", "mlp.hook_"}) {
      globs.push_back(fmt::format("{}{}.{}{}", prefix, layer, between, wanted.name));
    }
    globs.push_back(fmt::format("{}hook_{}", prefix, wanted.name));
  }
  if (text == "logits") globs.emplace_back("unembed.hook_out");
  return globs;
}

}  // namespace

bool is_scores_point(PointKind kind) {
  return kind == PointKind::scores || kind == PointKind::cross_scores;
}

bool is_pattern_point(PointKind kind) {
  return kind == PointKind::pattern || kind == PointKind::cross_pattern;
}

Point pattern_of(const Point& plane) {
  return {is_cross_point(plane.kind) ? PointKind::cross_pattern : PointKind::pattern, plane.layer,
          plane.site};
}

Point scores_of(const Point& plane) {
  return {is_cross_point(plane.kind) ? PointKind::cross_scores : PointKind::scores, plane.layer,
          plane.site};
}

bool has_source_rows(const Point& point) {
  return point.site == StackSite::encoder || point.kind == PointKind::cross_key ||
         point.kind == PointKind::cross_value;
}

std::vector<Point> stream_points(const Architecture& architecture) {
  return stream_points(architecture,
                       architecture.is_encoder_decoder() ? StackSite::decoder : StackSite::only);
}

std::vector<Point> stream_points(const Architecture& architecture, StackSite site) {
  const StackSpecification& stack = architecture.of(site);
  std::vector<Point> points;
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) {
    points.push_back({PointKind::residual_pre, layer, site});
  }
  points.push_back(
      {stack.is_post_norm() ? PointKind::normalized_residual_post : PointKind::residual_post,
       stack.layers - 1, site});
  return points;
}

std::vector<Point> depth_points(const Architecture& architecture) {
  std::vector<Point> points = stream_points(architecture);
  points.insert(points.begin(), {PointKind::embedding, -1});
  return points;
}

std::string edit_label(const Point& point) {
  constexpr std::string_view before = "hook_";
  const std::string name = point_name(point);
  const std::string label = point.kind == PointKind::unembedding_in
                                ? "unembed_in"
                                : name.substr(name.rfind(before) + before.size());
  return point.layer < 0 ? label + "_edit" : fmt::format("{}_{}_edit", point.layer, label);
}

void require_point(const StackSpecification& stack, const Point& point) {
  const std::string name = point_name(point);
  const std::vector<Point> of_any = points_of_any(stack.layers);
  require(std::ranges::find(of_any, point) != of_any.end(), ErrorCode::invalid_argument,
          "{} does not exist: the model has layers 0 to {}", name, stack.layers - 1);
  require(has_point(stack, point.kind), ErrorCode::unsupported, "this model has no {}: {}", name,
          reason_of_absence(point.kind));
}

std::vector<Point> points_named(std::string_view name, const StackSpecification& stack) {
  const std::vector<Point> every = all_points(stack), of_any = points_of_any(stack.layers);
  for (const std::string& pattern :
       {std::string(name), short_name_pattern(name), fmt::format("blocks.*.{}", name),
        fmt::format("blocks.*.attn.{}", name)}) {
    std::vector<Point> points = matching(pattern, every);
    if (!points.empty()) return points;
    points = matching(pattern, of_any);
    if (!points.empty()) require_point(stack, points.front());
  }
  std::vector<std::string> candidates;
  const bool is_glob = name.find('*') != std::string_view::npos;
  for (const Point& point : every) {
    const std::string known = point_name(point);
    if (is_glob && point.layer > 0) continue;
    candidates.push_back(is_glob && point.layer == 0 ? "blocks.*" + known.substr(8) : known);
  }
  for (const ShortName& known : short_names) {
    const auto named = [&](const Point& point) { return point_name(point).ends_with(known.point); };
    if (std::ranges::any_of(every, named)) candidates.emplace_back(known.name);
  }
  fail(ErrorCode::invalid_argument,
       "a model with {} layers has no point '{}'; did you mean {}? (* stands for any part)",
       stack.layers, name, list_of(nearest_names(name, candidates, 3)));
}

void require_point(const Architecture& architecture, const Point& point) {
  if (!architecture.is_encoder_decoder()) return require_point(architecture.decoder(), point);
  const std::string name = point_name(point);
  require(point.site != StackSite::only, ErrorCode::invalid_argument,
          "{} does not say which stack it belongs to: encoder.…, decoder.… or cross.…", name);
  const StackSpecification& stack = architecture.of(point.site);
  require(point.layer < stack.layers, ErrorCode::invalid_argument,
          "{} does not exist: the {} has layers 0 to {}", name,
          point.site == StackSite::encoder ? "encoder" : "decoder", stack.layers - 1);
  require(has_point(stack, point.kind), ErrorCode::unsupported, "this model has no {}", name);
}

std::vector<Point> points_named(std::string_view name, const Architecture& architecture) {
  if (!architecture.is_encoder_decoder()) return points_named(name, architecture.decoder());
  const std::vector<Point> every = all_points(architecture);
  for (const std::string& glob : globs_of(name)) {
    std::vector<Point> points;
    for (const Point& point : every) {
      if (matches_glob(point_name(point), glob)) points.push_back(point);
    }
    if (!points.empty()) return points;
  }
  std::vector<std::string> candidates;
  for (const Point& point : every) {
    if (point.layer <= 0) candidates.push_back(point_name(point));
  }
  for (const char* const known : {"encoder.pattern", "decoder.pattern", "cross.pattern",
                                  "encoder.resid_pre", "decoder.resid_pre", "cross.z", "cross.q"}) {
    candidates.emplace_back(known);
  }
  const std::vector<std::string> nearest = nearest_names(name, candidates, 3);
  fail(ErrorCode::invalid_argument,
       "this encoder-decoder has no point '{}'; did you mean '{}', '{}' or '{}'? (* stands for any "
       "part)",
       name.substr(0, 80), nearest.at(0), nearest.at(1), nearest.at(2));
}

}  // namespace heed
