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

constexpr std::array<NamedPoint, 29> named_points{{
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
    {PointKind::scores, "attn.hook_attn_scores", true},
    {PointKind::pattern, "attn.hook_pattern", true},
    {PointKind::mixed_values, "attn.hook_z", true},
    {PointKind::head_results, "attn.hook_result", true},
    {PointKind::attention_out, "hook_attn_out", true},
    {PointKind::residual_mid, "hook_resid_mid", true},
    {PointKind::feed_forward_in, "hook_mlp_in", true},
    {PointKind::norm_2_scale, "ln2.hook_scale", true},
    {PointKind::norm_2_normalized, "ln2.hook_normalized", true},
    {PointKind::neurons_pre, "mlp.hook_pre", true},
    {PointKind::neurons_post, "mlp.hook_post", true},
    {PointKind::feed_forward_out, "hook_mlp_out", true},
    {PointKind::residual_post, "hook_resid_post", true},
    {PointKind::final_scale, "ln_final.hook_scale", false},
    {PointKind::final_normalized, "ln_final.hook_normalized", false},
    {PointKind::unembedding_in, "unembed.hook_in", false},
    {PointKind::logits, "unembed.hook_out", false},
}};

}  // namespace

std::string point_name(const Point& point) {
  for (const NamedPoint& named : named_points) {
    if (named.kind != point.kind) continue;
    return named.in_block ? fmt::format("blocks.{}.{}", point.layer, named.name)
                          : std::string(named.name);
  }
  fail(ErrorCode::internal, "unknown probe point {}", static_cast<int>(point.kind));
}

std::optional<Point> point_from_name(std::string_view name) {
  constexpr std::string_view prefix = "blocks.";
  std::int64_t layer = -1;
  const bool in_block = name.starts_with(prefix);
  if (in_block) {
    name.remove_prefix(prefix.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    if (error != std::errc{} || layer < 0 || end == name.data() + name.size() || *end != '.') {
      return std::nullopt;
    }
    name.remove_prefix(static_cast<std::size_t>(end - name.data()) + 1);
  }
  for (const NamedPoint& named : named_points) {
    if (named.in_block == in_block && named.name == name) return Point{named.kind, layer};
  }
  return std::nullopt;
}

std::vector<Point> all_points(std::int64_t layers) {
  const auto in_block = [](const NamedPoint& named) { return named.in_block; };
  const auto first = std::ranges::find_if(named_points, in_block);
  const auto last = std::ranges::find_if_not(first, named_points.end(), in_block);
  std::vector<Point> points;
  const auto add = [&](auto begin, auto end, std::int64_t layer) {
    std::for_each(begin, end, [&](const auto& named) { points.push_back({named.kind, layer}); });
  };
  add(named_points.begin(), first, -1);
  for (std::int64_t layer = 0; layer < layers; ++layer) add(first, last, layer);
  add(last, named_points.end(), -1);
  return points;
}

}  // namespace heed
