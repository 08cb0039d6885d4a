#include "microscope/patch/patch_grid.h"

#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "base/text.h"

namespace heed {
namespace {

using enum PatchColumns;

// In the order of PatchGrid.
constexpr std::array<PatchGridKind, 17> kinds{{
    {"resid_pre", PointKind::residual_pre, positions},
    {"resid_mid", PointKind::residual_mid, positions},
    {"attn_out", PointKind::attention_out, positions},
    {"mlp_out", PointKind::feed_forward_out, positions},
    {"attn_head_out", PointKind::mixed_values, heads},
    {"attn_head_q", PointKind::query, heads},
    {"attn_head_k", PointKind::key, heads},
    {"attn_head_v", PointKind::value, heads},
    {"attn_head_pattern", PointKind::pattern, heads},
    {"attn_head_out_by_pos", PointKind::mixed_values, heads_by_position},
    {"attn_head_q_by_pos", PointKind::query, heads_by_position},
    {"attn_head_k_by_pos", PointKind::key, heads_by_position},
    {"attn_head_v_by_pos", PointKind::value, heads_by_position},
    {"attn_head_pattern_by_pos", PointKind::pattern, heads_by_position},
    {"edge", PointKind::pattern, keys},
    {"edge_cut", PointKind::pattern, keys},
    {"edge_cut_renormalised", PointKind::pattern, keys},
}};

}  // namespace

const PatchGridKind& patch_grid_kind(PatchGrid grid) {
  return kinds.at(static_cast<std::size_t>(grid));
}

std::int64_t patched_heads(const StackSpecification& config, const PatchGridKind& kind) {
  const bool is_shared = kind.point == PointKind::key || kind.point == PointKind::value;
  return is_shared ? config.key_value_heads() : config.heads();
}

std::vector<std::string> patched_head_names(const StackSpecification& config,
                                            const PatchGridKind& kind) {
  const std::int64_t count = patched_heads(config, kind), group = config.heads() / count;
  std::vector<std::string> names;
  for (std::int64_t head = 0; head < count; ++head) {
    const std::int64_t first = head * group;
    names.push_back(group == 1 ? fmt::format("H{}", head)
                               : fmt::format("H{}-{}", first, first + group - 1));
  }
  return names;
}

const char* patch_grid_name(PatchGrid grid) { return patch_grid_kind(grid).name; }

std::vector<std::string> patch_grid_names() {
  std::vector<std::string> names;
  for (const PatchGridKind& kind : kinds) names.emplace_back(kind.name);
  return names;
}

PatchGrid patch_grid_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (name == kinds[i].name) return static_cast<PatchGrid>(i);
  }
  fail(ErrorCode::invalid_argument, "there is no patching grid '{}'; did you mean '{}'?", name,
       fmt::join(nearest_names(name, patch_grid_names(), 3), "', '"));
}

}  // namespace heed
