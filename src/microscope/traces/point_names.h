// Names of points as users write them: full names, globs and TransformerLens's short names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"
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
//   rot_q, rot_k, pre_linear     rotated queries and keys, what a gate multiplies
// Throws Error{unsupported}, with the reason, for points that other models have and this one lacks,
// and Error{invalid_argument} for any other name, with the nearest ones.
std::vector<Point> points_named(std::string_view name, const StackSpecification& stack);

// The same of a model of two stacks:
//   encoder.0.attn.hook_pattern, decoder.*.cross_attn.hook_q      names and globs of them
//   encoder.pattern, decoder.resid_pre1, cross.pattern, cross.z0  short names after their stack;
//                                                                 cross: attention to the encoder
std::vector<Point> points_named(std::string_view name, const Architecture& architecture);

// Whether the model has the point. Throws Error{invalid_argument} for a layer that does not exist,
// and Error{unsupported}, with the reason, for a point that only other models have.
void require_point(const StackSpecification& stack, const Point& point);
// The same of a model of two stacks, whose points name theirs.
void require_point(const Architecture& architecture, const Point& point);

// Of self-attention or cross-attention.
bool is_scores_point(PointKind kind);
bool is_pattern_point(PointKind kind);
Point pattern_of(const Point& plane);
Point scores_of(const Point& plane);

// Whether the rows of a point are positions of the source: of the encoder, and keys and values of
// cross-attention.
bool has_source_rows(const Point& point);

// The residual stream before every block (residual_pre), and after the last (residual_post, or its
// norm where norms come after their branches); of two stacks, the decoder's.
std::vector<Point> stream_points(const Architecture& architecture);
// Of a stack; of one that is not named, as above.
std::vector<Point> stream_points(const Architecture& architecture, StackSite site);
// The token embedding, then stream_points().
std::vector<Point> depth_points(const Architecture& architecture);

// "2_resid_mid_edit": the label of what an intervention at a point adds to the stream.
std::string edit_label(const Point& point);

}  // namespace heed
