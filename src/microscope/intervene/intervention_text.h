// Interventions written as short texts, for command lines and bindings.
//
//   L2H3          a head: its mixed values, blocks.2.attn.hook_z
//   L2H3.q, .k, .v, .q_input, .k_input, .v_input, .z, .scores, .pattern, .result    its points
//   L2N17         a neuron: blocks.2.mlp.hook_post
//   L2, L2.attn, L2.mlp    what a block, or one half of it, adds to the stream
//   blocks.2.hook_resid_mid, blocks.*.hook_mlp_out, resid_mid2    points, see point_names.h
//
// Each may be followed by @ and positions: @5, @3-7, @4- (from 4 on).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "microscope/intervene/intervention.h"

namespace heed {

struct InterventionPoint {
  Site site;
  Selection where;
};

// All the points that a text stands for. Throws Error{invalid_argument}, with the nearest names,
// for one that stands for none in such a model.
std::vector<InterventionPoint> parse_points(const GptConfig& config, std::string_view text);

// "L1H0:7>3" or "L1H0:7>3,7>4": edges of a head from query to key. Throws Error{invalid_argument}
// for what is not written so; the head is a place.
struct HeadEdges {
  std::string head;
  std::vector<CutEdges::Edge> edges;
};
HeadEdges parse_edges(std::string_view text);

// "PLACE=VALUE", both not empty. `example` is shown where it is not that.
struct PointAndValue {
  std::string point;
  std::string value;
};
PointAndValue parse_assignment(std::string_view text, std::string_view example);

// Throws Error{invalid_argument} for what is no number.
float parse_factor(std::string_view text);

}  // namespace heed
