// Interventions: edits of values during a forward pass. An edited model is used like any model.
//
//   heed::EditedModel edited(model, {{.where = "L2H3", .change = heed::SetZero{}},
//                                    {.where = "L1H0", .change = heed::CutEdges{{{7, 3}}}}});
//   edited.predict(tokens, {});
//
// Several edits are applied in order, on every path: whole texts, prompts and generation steps.
// Everything downstream of an edit uses the edited values. Notation: B batch, T positions, C
// channels, H heads, D head size, F neurons; the width of a point is the last dimension of its
// shape.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "heed/heed.h"
#include "heed/texts.h"

namespace heed {

struct SetZero {};
struct ScaleBy {
  float factor = 1.0F;
};
// Adds a vector at every position: (width); at points with heads (D) for each head, or (H·D).
struct AddVector {
  std::vector<float> vector;
};
// Adds factor · (mean over the text `toward` − mean over the text `away`) at every position
// (activation addition, Turner et al. 2023). An empty `away` has the mean zero.
struct SteerBy {
  float factor = 1.0F;
  Texts toward;
  Texts away{};
};
// Sets one row at every position: (width), or (H·D) at points with heads.
struct SetRow {
  std::vector<float> row;
};
// Sets the mean of the point over all positions of the texts, each starting at position 0.
struct SetMean {
  std::vector<Texts> texts;
};
// Sets the values of the same point from another trace, B = 1, with all heads and with positions
// from 0 on; positions beyond the trace are unchanged. Setting a traced pattern freezes it.
struct TakeFrom {
  TracedArray values;
};
// Sets the values of the same points from a run of the unedited model on another text.
struct TakeFromText {
  Texts text;
};
// Sets the pattern of heads, of all heads of blocks, or of a whole attention, from a run of the
// unedited model on a text: TakeFromText at their patterns, for edits named L2H3 or L2.
struct FreezePattern {
  Texts text;
};
// Sets weights of a head's pattern to zero; the rest of the row is kept, or renormalised to sum to
// one (a row without remaining weights stays zero).
struct CutEdges {
  struct Edge {
    std::int64_t query = 0;
    std::int64_t key = 0;
  };
  enum class Rest { kept, renormalised };
  std::vector<Edge> edges;
  Rest rest = Rest::kept;
};

// The same for the edges between two words of `text`: from the positions that write word `query`
// (in an encoder, those that read it) to the tokens of word `key`. Words are counted from 0 and
// include the tokens between them; of cross-attention, `key` is a word of the source.
struct CutWords {
  Texts text;
  std::int64_t query = 0;
  std::int64_t key = 0;
  CutEdges::Rest rest = CutEdges::Rest::kept;
};
// Changes the mask of a head's attention within one text: hides the keys after each query where all
// are visible, as an encoder's are, or shows all where a causal mask hides some. In cached steps,
// "all" are those in the cache.
struct SetMask {
  enum class Kind { causal, none };
  Kind kind = Kind::causal;
};

struct Edit {
  // L2H3         a head: its mixed values, blocks.2.attn.hook_z; L2H3.q, .k, .v, .q_input,
  //              .k_input, .v_input, .scores, .pattern and .result are its other points
  // L2N17        a neuron, after the activation: blocks.2.mlp.hook_post
  // L2           a block: what its attention and its feed-forward layer add to the stream; L2.attn
  //              and L2.mlp are its halves
  // blocks.2.hook_resid_mid, blocks.*.hook_mlp_out, resid_mid2    any points, as in a TraceRequest
  // encoder.L0H3, decoder.L1N17, cross.L1H2, decoder.1.hook_resid_mid    the same in a translator
  // After each, @5, @3-7 or @4- chooses positions; of scores and pattern, queries.
  // Patterns are frozen, edges cut and masks set in the heads that it names: L2H3, L2 (all of a
  // block), encoder, decoder or cross (all of an attention; self where there is one).
  std::string where;
  std::variant<SetZero, ScaleBy, AddVector, SteerBy, SetRow, SetMean, TakeFrom, TakeFromText,
               FreezePattern, CutEdges, CutWords, SetMask>
      change;
  // Positions before this one are unchanged. In a generation, the token of step s has the position
  // length of the prompt + s.
  std::int64_t first_position = 0;
};

// A model with edits, which is used like any other one and shares the weights of `model`: changes
// of those weights are seen by both. Several threads may use it at once. Edges beyond the end of a
// text are ignored. Gradients pass through added vectors; a gradient before any other edit throws
// Error{unsupported}.
class EditedModel : public Model {
 public:
  // Throws Error{invalid_argument} for a point that the model does not have (with the nearest
  // names), a vector or trace of the wrong shape, and a change that its point does not support:
  // only patterns have edges, and scores and patterns take neither vectors nor means.
  EditedModel(const Model& model, const std::vector<Edit>& edits);
};

using EditedTranslator = EditedModel;  // every step of a search, too

}  // namespace heed
