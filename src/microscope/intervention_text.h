// Interventions written as short texts, for command lines and bindings.
//
//   L2H3          a head: its mixed values, blocks.2.attn.hook_z
//   L2H3.q, L2H3.k, L2H3.v, L2H3.z, L2H3.scores, L2H3.pattern    its points
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

#include "microscope/intervention.h"

namespace heed {

struct InterventionPlace {
  Site site;
  Selection where;
};

// The points that a text names. Throws Error{invalid_argument}, with the nearest names, for a text
// that names none of such a model.
std::vector<InterventionPlace> parse_places(const GptConfig& config, std::string_view text);

// "L1H0:7>3" or "L1H0:7>3,7>4": edges of a head from query to key. Throws Error{invalid_argument}
// for any other text; `head` is a place, as parse_places takes it.
struct HeadEdges {
  std::string head;
  std::vector<CutEdges::Edge> edges;
};
HeadEdges parse_edges(std::string_view text);

// Throw Error{invalid_argument}, naming `text`, for positions and edges that a text of `positions`
// tokens does not have: an intervention there would change nothing.
void require_positions(const Selection& where, std::int64_t positions, std::string_view text);
void require_positions(const HeadEdges& edges, std::int64_t positions, std::string_view text);

// "PLACE=VALUE", both not empty; the error for any other text shows `example`.
struct PlaceAndValue {
  std::string place;
  std::string value;
};
PlaceAndValue parse_assignment(std::string_view text, std::string_view example);

// Throws Error{invalid_argument} for anything but a finite number.
float parse_factor(std::string_view text);

}  // namespace heed
