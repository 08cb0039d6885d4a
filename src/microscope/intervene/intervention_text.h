// The text notation of interventions, for command lines, requests and edits.
//
// In a model of one stack:
//   L2H3          a head: its mixed values, blocks.2.attn.hook_z
//   L2H3.q, .k, .v, .rot_q, .rot_k, .q_input, .k_input, .v_input, .z, .scores, .pattern, .result
//                 its points; of keys and values (.k, .v, .rot_k, .k_input, .v_input), those of the
//                 key/value head that H3 reads, which other heads may share
//   L2N17         a neuron: blocks.2.mlp.hook_post
//   L2, L2.attn, L2.mlp    the outputs of a block, or of one of its branches
//   blocks.2.hook_resid_mid, blocks.*.hook_mlp_out, resid_mid2    points, see point_names.h
//
// In an encoder-decoder, after the name of the attention or of the stack:
//   encoder.L0H3, decoder.L1N17, cross.L1H2.pattern      cross: the decoder's attention to the
//   source decoder.L1.attn, decoder.L1.cross, decoder.L1.mlp    branches; cross.L1 is
//   decoder.L1.cross decoder.1.hook_resid_mid, encoder.resid_pre0         points, see point_names.h
//
// Where patterns are meant, encoder, decoder, cross, and self in a model of one stack, are the
// attention of every layer.
//
// Each may be followed by positions: @5, @3-7, @4- (from 4 on); of the encoder and of keys and
// values of cross-attention, positions of the source.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "microscope/attention/text_words.h"
#include "microscope/intervene/intervention.h"
#include "microscope/intervene/pair_effects.h"
#include "model/attention_site.h"
#include "model/texts.h"

namespace heed {

struct InterventionPoint {
  Point point;
  Selection where;
};

// The points that a text selects. Throws Error{invalid_argument}, with the nearest names, if it
// selects none in this model, and Error{unsupported} for points that this model lacks.
std::vector<InterventionPoint> parse_points(const Architecture& architecture,
                                            std::string_view text);

// The patterns of the heads, blocks or sites that a text names, each once; of decoder.L1, those of
// its attention to itself. Throws what parse_points throws, and Error{invalid_argument} for what
// has no pattern.
std::vector<InterventionPoint> pattern_points(const Architecture& architecture,
                                              std::string_view text);

// Parses "@5"'s "5", "3-7" or "4-". Throws Error{invalid_argument} for any other form.
Selection parse_positions(std::string_view text);

// Parses edges of a head from query to key: "L1H0:7>3" or "L1H0:7>3,7>4". Throws
// Error{invalid_argument} for any other form; the head is a text for pattern_points().
struct HeadEdges {
  std::string head;
  std::vector<CutEdges::Edge> edges;
};
HeadEdges parse_edges(std::string_view text);

// The lengths of the texts of a pass.
struct TextLengths {
  std::int64_t source = 0;
  std::int64_t target = 0;

  static TextLengths of(const Texts& texts) {
    return {std::ssize(texts.source), std::ssize(texts.target)};
  }
  std::int64_t rows(const Point& point) const;
  std::int64_t queries(AttentionSite site) const { return site == encoder_site ? source : target; }
  std::int64_t keys(AttentionSite site) const {
    return site == encoder_site || site == cross_site ? source : target;
  }
};

// Throw Error{invalid_argument}, naming `text`, for positions and edges that the texts do not have:
// an intervention there would change nothing.
void require_positions(const InterventionPoint& selected, const TextLengths& lengths,
                       std::string_view text);
void require_edges(const InterventionPoint& pattern, const std::vector<CutEdges::Edge>& edges,
                   const TextLengths& lengths, std::string_view text);

// The words of a text, or of one text of two.
using WordsOf =
    std::function<std::vector<TextWord>(PairSide side, std::span<const std::int32_t> tokens)>;

// The edges from the positions that write a word of the queries' text (in an encoder, those that
// read it) to the tokens of a word of the keys' text. Throws Error{invalid_argument} for words that
// are not there, and where a causal mask hides one from the other.
std::vector<CutEdges::Edge> edges_between_words(const Architecture& architecture,
                                                AttentionSite site, const Texts& texts,
                                                const WordsOf& words, std::int64_t query,
                                                std::int64_t key);

// Parses "POINT=VALUE", both not empty. Errors show `example`.
struct PointAndValue {
  std::string point;
  std::string value;
};
PointAndValue parse_assignment(std::string_view text, std::string_view example);

// Throws Error{invalid_argument} for anything but a finite number.
float parse_factor(std::string_view text);

// "causal" or "none". Throws Error{invalid_argument} for any other.
SetMask parse_mask(std::string_view text);

}  // namespace heed
