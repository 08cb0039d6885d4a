// The text notation of interventions, for command lines and requests.
//
//   L2H3          a head: its mixed values, blocks.2.attn.hook_z
//   L2H3.q, .k, .v, .rot_q, .rot_k, .q_input, .k_input, .v_input, .z, .scores, .pattern, .result
//                 its points; of keys and values (.k, .v, .rot_k, .k_input, .v_input), those of the
//                 key/value head that H3 reads, which other heads may share
//   L2N17         a neuron: blocks.2.mlp.hook_post
//   L2, L2.attn, L2.mlp    the outputs of a block, or of one of its branches
//   blocks.2.hook_resid_mid, blocks.*.hook_mlp_out, resid_mid2    points, see point_names.h
//
// Each may be followed by positions: @5, @3-7, @4- (from 4 on).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "microscope/intervene/intervention.h"

namespace heed {

struct InterventionPoint {
  Point point;
  Selection where;
};

// The points that a text selects. Throws Error{invalid_argument}, with the nearest names, if it
// selects none in this model, and Error{unsupported} for points that this model lacks.
std::vector<InterventionPoint> parse_points(const StackSpecification& config,
                                            std::string_view text);

// The patterns of the heads and blocks that `points` name, each once. Throws
// Error{invalid_argument} for a neuron and for a point outside the blocks; `text` names them.
std::vector<InterventionPoint> pattern_points(std::vector<InterventionPoint> points,
                                              std::string_view text);

// Parses edges of a head from query to key: "L1H0:7>3" or "L1H0:7>3,7>4". Throws
// Error{invalid_argument} for any other form; the head is a text for parse_points().
struct HeadEdges {
  std::string head;
  std::vector<CutEdges::Edge> edges;
};
HeadEdges parse_edges(std::string_view text);

// Throw Error{invalid_argument}, naming `text`, for positions and edges that a text of `positions`
// tokens does not have: an intervention there would change nothing.
void require_positions(const Selection& where, std::int64_t positions, std::string_view text);
void require_positions(const HeadEdges& edges, std::int64_t positions, std::string_view text);

// Parses "POINT=VALUE", both not empty. Errors show `example`.
struct PointAndValue {
  std::string point;
  std::string value;
};
PointAndValue parse_assignment(std::string_view text, std::string_view example);

// Throws Error{invalid_argument} for anything but a finite number.
float parse_factor(std::string_view text);

}  // namespace heed
