// Points as people ask for them, and what was probably meant where a name is unknown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/probe.h"

namespace heed {

// What a name ends in that asks for the gradient of a point in its place.
inline constexpr std::string_view gradient_suffix = "_grad";

// The sites that a name stands for, in the order of a pass:
//   blocks.3.attn.hook_pattern   a point, by TransformerLens's names
//   blocks.*.hook_resid_*        a glob of them: * stands for any characters
//   attn.hook_q, hook_resid_pre  without its block: in every layer
//   hook_q, hook_result          without "attn." too
//   resid_pre, k6, pattern       TransformerLens's short names, with a layer or in every one
// Throws Error{invalid_argument} for any other, with the nearest names.
std::vector<Site> sites_named(std::string_view name, std::int64_t layers);

// "2_resid_mid_edit": what an intervention at a site adds to the stream, in a list of its parts.
std::string edit_label(const Site& site);

// The up to `count` candidates that take the fewest letters to change.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       std::size_t count);

}  // namespace heed
