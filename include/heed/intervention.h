// Changing a pass: what to change, and where. The model that comes of it is asked as any other.
//
//   heed::EditedModel edited(model, {{.where = "L2H3", .change = heed::SetZero{}},
//                                    {.where = "L1H0", .change = heed::CutEdges{{{7, 3}}}}});
//   edited.predict(tokens, {});
//
// Several edits act together, in their order, on every path: whole texts, prompts and the steps
// after them. Everything downstream of a change sees it. Letters: B batch, T positions, C channels,
// H heads, D head size, F neurons; the width of a point is the last dimension of its shape.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "heed/heed.h"

namespace heed {

struct SetZero {};
struct ScaleBy {
  float factor = 1.0F;
};
// The same vector at every position: (width); at points that have heads (D), the same for each of
// them, or (H·D).
struct AddVector {
  std::vector<float> vector;
};
// Adds factor · (mean over the text `toward` − mean over the text `away`) at every position; no
// text to move away from takes nothing off (activation addition, Turner et al. 2023).
struct SteerBy {
  float factor = 1.0F;
  std::vector<std::int32_t> toward;
  std::vector<std::int32_t> away{};
};
// One row at every position: (width), or (H·D) at points that have heads.
struct SetRow {
  std::vector<float> row;
};
// The mean of the point over all positions of some texts, each read from its own beginning.
struct SetMean {
  std::vector<std::vector<std::int32_t>> texts;
};
// The values of the same point in another trace, B = 1, with all of its heads and with positions
// from 0 on; positions that it does not have stay as they are. A pattern traced before and put back
// is frozen.
struct TakeFrom {
  TracedArray values;
};
// The same, of a pass over another text that the unchanged model reads for it. May stand at several
// points.
struct TakeFromText {
  std::vector<std::int32_t> tokens;
};
// The pattern of heads, or of all heads of blocks, as it is while the unchanged model reads a text:
// with TakeFromText at their patterns, for places named L2H3 or L2.
struct FreezePattern {
  std::vector<std::int32_t> tokens;
};
// Shares of a head's pattern become zero; what is left of a row keeps its size, or is scaled so
// that it sums to one again (a row of which nothing is left stays zero).
struct CutEdges {
  struct Edge {
    std::int64_t query = 0;
    std::int64_t key = 0;
  };
  enum class Rest { kept, renormalised };
  std::vector<Edge> edges;
  Rest rest = Rest::kept;
};

struct Edit {
  // L2H3         a head: its mixed values, blocks.2.attn.hook_z; L2H3.q, .k, .v, .q_input,
  //              .k_input, .v_input, .scores, .pattern and .result are its other points
  // L2N17        a neuron, after the activation: blocks.2.mlp.hook_post
  // L2           a block: what its attention and its feed-forward layer add to the stream; L2.attn
  //              and L2.mlp are its halves
  // blocks.2.hook_resid_mid, blocks.*.hook_mlp_out, resid_mid2    any points, as in a TraceRequest
  // Behind each, @5, @3-7 or @4- chooses positions; of scores and pattern, queries.
  std::string where;
  std::variant<SetZero, ScaleBy, AddVector, SteerBy, SetRow, SetMean, TakeFrom, TakeFromText,
               FreezePattern, CutEdges>
      change;
  // No position before this one is changed. In a generation, the token of step s stands at the
  // length of the prompt + s.
  std::int64_t first_position = 0;
};

// A model under edits. Borrows the model, which must outlive it (and may be moved). Several threads
// may ask it at once.
class EditedModel {
 public:
  // Throws Error{invalid_argument}, with what there is, for a place that the model does not have, a
  // vector or trace of the wrong shape, and a change that its point does not know: only patterns
  // have edges, and rows of scores and patterns take neither vectors nor means.
  EditedModel(const Model& model, const std::vector<Edit>& edits);
  EditedModel(EditedModel&&) noexcept;
  EditedModel& operator=(EditedModel&&) noexcept;
  ~EditedModel();

  // As those of Model. Edges beyond the end of a text are not there to be cut. A trace's gradients
  // pass where vectors are added; for one before any other edit it throws Error{unsupported}.
  std::vector<float> logits(std::span<const std::int32_t> tokens) const;
  std::vector<Model::Next> predict(std::span<const std::int32_t> tokens,
                                   const Model::Sampling& sampling, std::size_t most = 10) const;
  Model::Generation generate(std::span<const std::int32_t> prompt,
                             const Model::GenerateOptions& options,
                             const Model::TextCallback& callback = {}) const;
  Trace trace(std::span<const std::int32_t> tokens, const TraceRequest& request,
              const GradientTarget& target = {}) const;
  Trace trace_generation(std::span<const std::int32_t> prompt, std::int64_t new_tokens,
                         const TraceRequest& request) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heed
