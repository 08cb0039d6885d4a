#include "model/probe.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace heed {
namespace {

// In the order of a forward pass.
struct NamedPoint {
  Point point;
  std::string_view name;  // inside a block: what follows "blocks.l."
  bool in_block;
};

constexpr std::array<NamedPoint, 29> points{{
    {Point::embedding, "hook_embed", false},
    {Point::position, "hook_pos_embed", false},
    {Point::residual_pre, "hook_resid_pre", true},
    {Point::attention_in, "hook_attn_in", true},
    {Point::query_input, "hook_q_input", true},
    {Point::key_input, "hook_k_input", true},
    {Point::value_input, "hook_v_input", true},
    {Point::norm_1_scale, "ln1.hook_scale", true},
    {Point::norm_1_normalized, "ln1.hook_normalized", true},
    {Point::query, "attn.hook_q", true},
    {Point::key, "attn.hook_k", true},
    {Point::value, "attn.hook_v", true},
    {Point::scores, "attn.hook_attn_scores", true},
    {Point::pattern, "attn.hook_pattern", true},
    {Point::mixed_values, "attn.hook_z", true},
    {Point::head_results, "attn.hook_result", true},
    {Point::attention_out, "hook_attn_out", true},
    {Point::residual_mid, "hook_resid_mid", true},
    {Point::feed_forward_in, "hook_mlp_in", true},
    {Point::norm_2_scale, "ln2.hook_scale", true},
    {Point::norm_2_normalized, "ln2.hook_normalized", true},
    {Point::neurons_pre, "mlp.hook_pre", true},
    {Point::neurons_post, "mlp.hook_post", true},
    {Point::feed_forward_out, "hook_mlp_out", true},
    {Point::residual_post, "hook_resid_post", true},
    {Point::final_scale, "ln_final.hook_scale", false},
    {Point::final_normalized, "ln_final.hook_normalized", false},
    {Point::unembedding_in, "unembed.hook_in", false},
    {Point::logits, "unembed.hook_out", false},
}};

}  // namespace

std::string site_name(const Site& site) {
  for (const NamedPoint& named : points) {
    if (named.point != site.point) continue;
    return named.in_block ? fmt::format("blocks.{}.{}", site.layer, named.name)
                          : std::string(named.name);
  }
  fail(ErrorCode::internal, "unknown probe point {}", static_cast<int>(site.point));
}

std::optional<Site> site_from_name(std::string_view name) {
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
  for (const NamedPoint& named : points) {
    if (named.in_block == in_block && named.name == name) return Site{named.point, layer};
  }
  return std::nullopt;
}

std::vector<Site> all_sites(std::int64_t layers) {
  const auto in_block = [](const NamedPoint& named) { return named.in_block; };
  const auto first = std::ranges::find_if(points, in_block);
  const auto last = std::ranges::find_if_not(first, points.end(), in_block);
  std::vector<Site> sites;
  const auto add = [&](auto begin, auto end, std::int64_t layer) {
    std::for_each(begin, end, [&](const auto& named) { sites.push_back({named.point, layer}); });
  };
  add(points.begin(), first, -1);
  for (std::int64_t layer = 0; layer < layers; ++layer) add(first, last, layer);
  add(last, points.end(), -1);
  return sites;
}

}  // namespace heed
