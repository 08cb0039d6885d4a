// The text notation of interventions in an encoder-decoder: that of intervention_text.h, after the
// name of the attention or the stack.
//
//   encoder.L0H3, decoder.L1H2, cross.L1H2   a head: its mixed values; cross: attention of the
//                                            decoder to the encoder's result
//   cross.L1H2.pattern, encoder.L0H3.q, …    its points
//   decoder.L1N17                            a neuron
//   encoder.L0, decoder.L1                   what the branches of a block add to the stream
//   decoder.L1.attn, decoder.L1.cross, decoder.L1.mlp, cross.L1     one of these branches
//   encoder, decoder, cross                  the attention of every layer, where patterns are meant
//   decoder.1.hook_resid_mid, encoder.resid_pre0    points, see point_names.h
//
// Each may be followed by positions: @5, @3-7, @4- (from 4 on); of keys and values of
// cross-attention, of the source.
#pragma once

#include <string_view>
#include <vector>

#include "microscope/intervene/intervention_text.h"
#include "model/attention_site.h"

namespace heed {

// As parse_points of one stack; throws the same.
std::vector<InterventionPoint> parse_pair_points(const Architecture& architecture,
                                                 std::string_view text);

// Patterns of heads, of layers, or of all layers of a kind: what edges are cut in. Throws
// Error{invalid_argument} for what has no pattern.
std::vector<InterventionPoint> parse_pair_patterns(const Architecture& architecture,
                                                   std::string_view text);

// "cross.L1H0:7>3,7>4": the edges of heads from queries to keys, as interventions.
struct PairEdges {
  std::vector<InterventionPoint> patterns;
  std::vector<CutEdges::Edge> edges;
};
PairEdges parse_pair_edges(const Architecture& architecture, std::string_view text);

}  // namespace heed
