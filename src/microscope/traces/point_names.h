// Names of points as users write them: full names, globs and TransformerLens's short names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/probe.h"

namespace heed {

// The suffix of a name that selects the gradient at a point.
inline constexpr std::string_view gradient_suffix = "_grad";

// The points that a name selects, in the order of a pass:
//   blocks.3.attn.hook_pattern   a point, by TransformerLens's names
//   blocks.*.hook_resid_*        a glob of them: * stands for any characters
//   attn.hook_q, hook_resid_pre  without its block: in every layer
//   hook_q, hook_result          without "attn." too
//   resid_pre, k6, pattern       TransformerLens's short names, with a layer or in every one
// Throws Error{invalid_argument} for any other, with the nearest names.
std::vector<Point> points_named(std::string_view name, std::int64_t layers);

// The residual stream before every block (residual_pre), and after the last (residual_post).
std::vector<Point> stream_points(std::int64_t layers);

// "2_resid_mid_edit": the label of what an intervention at a point adds to the stream.
std::string edit_label(const Point& point);

}  // namespace heed
