#include "model/probe.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace heed {
namespace {

// In the order of a forward pass.
struct NamedPoint {
  PointKind kind;
  std::string_view name;  // inside a block: what follows "blocks.l."
  bool in_block;
};

constexpr std::array<NamedPoint, 47> named_points{{
    {PointKind::embedding, "hook_embed", false},
    {PointKind::position, "hook_pos_embed", false},
    {PointKind::residual_pre, "hook_resid_pre", true},
    {PointKind::attention_in, "hook_attn_in", true},
    {PointKind::query_input, "hook_q_input", true},
    {PointKind::key_input, "hook_k_input", true},
    {PointKind::value_input, "hook_v_input", true},
    {PointKind::norm_1_scale, "ln1.hook_scale", true},
    {PointKind::norm_1_normalized, "ln1.hook_normalized", true},
    {PointKind::query, "attn.hook_q", true},
    {PointKind::key, "attn.hook_k", true},
    {PointKind::value, "attn.hook_v", true},
    {PointKind::rotated_query, "attn.hook_rot_q", true},
    {PointKind::rotated_key, "attn.hook_rot_k", true},
    {PointKind::scores, "attn.hook_attn_scores", true},
    {PointKind::pattern, "attn.hook_pattern", true},
    {PointKind::mixed_values, "attn.hook_z", true},
    {PointKind::head_results, "attn.hook_result", true},
    {PointKind::attention_out_scale, "ln1_post.hook_scale", true},
    {PointKind::attention_out_normalized, "ln1_post.hook_normalized", true},
    {PointKind::attention_out, "hook_attn_out", true},
    {PointKind::residual_mid, "hook_resid_mid", true},
    {PointKind::cross_norm_scale, "ln2.hook_scale", true},
    {PointKind::cross_norm_normalized, "ln2.hook_normalized", true},
    {PointKind::cross_query, "cross_attn.hook_q", true},
    {PointKind::cross_key, "cross_attn.hook_k", true},
    {PointKind::cross_value, "cross_attn.hook_v", true},
    {PointKind::cross_scores, "cross_attn.hook_attn_scores", true},
    {PointKind::cross_pattern, "cross_attn.hook_pattern", true},
    {PointKind::cross_mixed_values, "cross_attn.hook_z", true},
    {PointKind::cross_attention_out, "hook_cross_attn_out", true},
    {PointKind::residual_cross, "hook_resid_mid_cross", true},
    {PointKind::feed_forward_in, "hook_mlp_in", true},
    {PointKind::norm_2_scale, "ln2.hook_scale", true},
    {PointKind::norm_2_normalized, "ln2.hook_normalized", true},
    {PointKind::neurons_pre, "mlp.hook_pre", true},
    {PointKind::neurons_linear, "mlp.hook_pre_linear", true},
    {PointKind::neurons_post, "mlp.hook_post", true},
    {PointKind::feed_forward_out_scale, "ln2_post.hook_scale", true},
    {PointKind::feed_forward_out_normalized, "ln2_post.hook_normalized", true},
    {PointKind::feed_forward_out, "hook_mlp_out", true},
    {PointKind::residual_post, "hook_resid_post", true},
    {PointKind::normalized_residual_post, "hook_normalized_resid_post", true},
    {PointKind::final_scale, "ln_final.hook_scale", false},
    {PointKind::final_normalized, "ln_final.hook_normalized", false},
    {PointKind::unembedding_in, "unembed.hook_in", false},
    {PointKind::logits, "unembed.hook_out", false},
}};

// Decoders that attend to an encoder number the norm of that attention as the second.
std::string_view own_name(const NamedPoint& named, StackSite site) {
  if (site == StackSite::decoder && named.kind == PointKind::norm_2_scale) return "ln3.hook_scale";
  if (site == StackSite::decoder && named.kind == PointKind::norm_2_normalized) {
    return "ln3.hook_normalized";
  }
  return named.name;
}

std::string_view block_prefix(StackSite site) {
  return site == StackSite::only ? "blocks." : site_prefix(site);
}

// Outside the blocks: "encoder.hook_embed", "encoder_final_ln.hook_scale", "unembed.hook_in".
std::string outer_name(const NamedPoint& named, StackSite site) {
  constexpr std::string_view final_norm = "ln_final.";
  if (site == StackSite::only || named.name.starts_with("unembed.")) {
    return std::string(named.name);
  }
  if (!named.name.starts_with(final_norm)) {
    return fmt::format("{}{}", site_prefix(site), named.name);
  }
  return fmt::format("{}_final_ln.{}", site == StackSite::encoder ? "encoder" : "decoder",
                     named.name.substr(final_norm.size()));
}

// A name inside the blocks of a stack, without its prefix.
std::optional<Point> block_point(std::string_view name, StackSite site) {
  std::int64_t layer = -1;
  const char* const last = name.data() + name.size();
  const auto [end, error] = std::from_chars(name.data(), last, layer);
  if (error != std::errc{} || layer < 0 || end == last || *end != '.') return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()) + 1);
  for (const NamedPoint& named : named_points) {
    if (!named.in_block || (is_cross_point(named.kind) && site != StackSite::decoder)) continue;
    if (own_name(named, site) == name) return Point{named.kind, layer, site};
  }
  return std::nullopt;
}

}  // namespace

bool is_plane(PointKind kind) {
  return kind == PointKind::scores || kind == PointKind::pattern ||
         kind == PointKind::cross_scores || kind == PointKind::cross_pattern;
}

bool is_cross_point(PointKind kind) {
  return kind >= PointKind::cross_norm_scale && kind <= PointKind::residual_cross;
}

std::string point_name(const Point& point) {
  for (const NamedPoint& named : named_points) {
    if (named.kind != point.kind) continue;
    return named.in_block ? fmt::format("{}{}.{}", block_prefix(point.site), point.layer,
                                        own_name(named, point.site))
                          : outer_name(named, point.site);
  }
  fail(ErrorCode::internal, "unknown probe point {}", static_cast<int>(point.kind));
}

std::optional<Point> point_from_name(std::string_view name) {
  for (const StackSite site : {StackSite::only, StackSite::encoder, StackSite::decoder}) {
    const std::string_view prefix = block_prefix(site);
    if (name.starts_with(prefix)) {
      if (const auto point = block_point(name.substr(prefix.size()), site)) return point;
    }
    for (const NamedPoint& named : named_points) {
      if (!named.in_block && outer_name(named, site) == name) return Point{named.kind, -1, site};
    }
  }
  return std::nullopt;
}

bool has_point(const StackSpecification& stack, PointKind kind) {
  if (is_cross_point(kind)) return stack.block.cross_attention.has_value();
  switch (kind) {
    case PointKind::position: return stack.has_position_vectors();
    case PointKind::rotated_query:
    case PointKind::rotated_key: return stack.block.attention.changes_query_and_key();
    case PointKind::neurons_linear: return stack.block.feed_forward.gated;
    case PointKind::residual_mid: return !stack.is_parallel();
    case PointKind::norm_1_scale:
    case PointKind::norm_1_normalized: return stack.has_input_norms() || stack.is_post_norm();
    case PointKind::norm_2_scale:
    case PointKind::norm_2_normalized:
      return (stack.has_input_norms() && !stack.shares_norm()) || stack.is_post_norm();
    case PointKind::feed_forward_in: return stack.has_input_norms() && !stack.shares_norm();
    case PointKind::attention_out_scale:
    case PointKind::attention_out_normalized:
    case PointKind::feed_forward_out_scale:
    case PointKind::feed_forward_out_normalized: return stack.has_output_norms();
    case PointKind::normalized_residual_post: return stack.is_post_norm();
    case PointKind::final_scale:
    case PointKind::final_normalized: return stack.final_norm;
    case PointKind::unembedding_in:
    case PointKind::logits: return stack.has_unembedding;
    default: return true;
  }
}

std::vector<Point> all_points(const StackSpecification& stack, StackSite site) {
  const auto in_block = [](const NamedPoint& named) { return named.in_block; };
  const auto first = std::ranges::find_if(named_points, in_block);
  const auto last = std::ranges::find_if_not(first, named_points.end(), in_block);
  std::vector<Point> points;
  const auto add = [&](auto begin, auto end, std::int64_t layer) {
    std::for_each(begin, end, [&](const NamedPoint& named) {
      if (has_point(stack, named.kind)) points.push_back({named.kind, layer, site});
    });
  };
  add(named_points.begin(), first, -1);
  for (std::int64_t layer = 0; layer < stack.layers; ++layer) add(first, last, layer);
  add(last, named_points.end(), -1);
  return points;
}

std::vector<Point> all_points(const Architecture& architecture) {
  std::vector<Point> points;
  for (std::size_t index = 0; index < architecture.stacks.size(); ++index) {
    const auto own = all_points(architecture.stacks[index], architecture.site(index));
    points.insert(points.end(), own.begin(), own.end());
  }
  return points;
}

std::vector<Point> all_points(std::int64_t layers) {
  StackSpecification gpt2;
  gpt2.layers = layers;
  return all_points(gpt2);
}

}  // namespace heed
