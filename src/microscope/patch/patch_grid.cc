#include "microscope/patch/patch_grid.h"

#include <fmt/ranges.h>

#include <array>

#include "base/error.h"
#include "base/nearest_names.h"

namespace heed {
namespace {

using enum PatchColumns;

// In the order of PatchGrid.
constexpr std::array<PatchGridKind, 17> kinds{{
    {"resid_pre", Point::residual_pre, positions},
    {"resid_mid", Point::residual_mid, positions},
    {"attn_out", Point::attention_out, positions},
    {"mlp_out", Point::feed_forward_out, positions},
    {"attn_head_out", Point::mixed_values, heads},
    {"attn_head_q", Point::query, heads},
    {"attn_head_k", Point::key, heads},
    {"attn_head_v", Point::value, heads},
    {"attn_head_pattern", Point::pattern, heads},
    {"attn_head_out_by_pos", Point::mixed_values, heads_by_position},
    {"attn_head_q_by_pos", Point::query, heads_by_position},
    {"attn_head_k_by_pos", Point::key, heads_by_position},
    {"attn_head_v_by_pos", Point::value, heads_by_position},
    {"attn_head_pattern_by_pos", Point::pattern, heads_by_position},
    {"edge", Point::pattern, keys},
    {"edge_cut", Point::pattern, keys},
    {"edge_cut_renormalised", Point::pattern, keys},
}};

}  // namespace

const PatchGridKind& patch_grid_kind(PatchGrid grid) {
  return kinds.at(static_cast<std::size_t>(grid));
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
