// The residual stream of a recorded pass as stacks of parts (Nanda and Bloom, TransformerLens,
// 2022): what it was before every layer, what each component, head or neuron wrote to it, and what
// these contribute to logits. Arrays of the caller's have the same stacks (activations_from).
//
//   heed::ResidualStack parts = heed::decomposed_residual(found, {});
//   heed::logit_contributions(found, parts, {.tokens = {mary}, .against = {john}});  // (parts, B,
//   P)
//
// Notation: B sequences, P chosen positions, C channels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/activations.h"

namespace heed {

struct ResidualStack {
  std::vector<std::string> labels;  // as TransformerLens names them
  Array values;                     // (parts, B, P, C)
};

struct StackRequest {
  std::int64_t layer = -1;  // the stream before this layer; −1: after the last
  // Of that layer, instead of before its attention; the same stream in a parallel block.
  bool before_feed_forward = false;
  std::vector<std::int64_t> positions{};  // empty: all; −1 is the last
};

// All throw Error{not_found} for points that were not recorded, and Error{invalid_argument} for a
// layer or position that does not exist. Of GivenActivations::Kind::others, embeddings that are not
// there are left out.

// "0_pre", "1_pre", …, "final_post"; with `middles`, also "0_mid", …, which parallel blocks do not
// have.
enum class StreamPoints { before_layers, middles };
ResidualStack accumulated_residual(const Activations& found, const StackRequest& request,
                                   StreamPoints points = StreamPoints::before_layers);

// "embed", "pos_embed", "0_attn_out", "0_mlp_out", …
enum class StackParts { all, attention, feed_forward };
ResidualStack decomposed_residual(const Activations& found, const StackRequest& request,
                                  StackParts parts = StackParts::all);

// "L0H0", "L0H1", …; with the remainder, what else the stream holds, as "remainder".
enum class StackRemainder { left_out, included };
ResidualStack head_results(const Activations& found, const StackRequest& request,
                           StackRemainder remainder = StackRemainder::left_out);

// "L0N0", "L0N1", …: what the neurons of layers from first_layer on wrote.
struct NeuronsOf {
  std::int64_t first_layer = 0;
  std::vector<std::int64_t> neurons{};  // of each of these layers; empty: all
};
ResidualStack neuron_results(const Activations& found, const StackRequest& request,
                             const NeuronsOf& chosen = {},
                             StackRemainder remainder = StackRemainder::left_out);

// All that the stream is the sum of: heads, then the neurons or outputs of feed-forward layers,
// embeddings, and as "bias" what attention, and feed-forward layers of which the neurons stand
// apart, add to each position of a text.
enum class FeedForwardUnit { neuron, layer };
ResidualStack full_decomposition(const Activations& found, const StackRequest& request,
                                 FeedForwardUnit unit = FeedForwardUnit::neuron);

// The stack (parts, B, P, C) as the norm before request.layer scales the stream, the final norm for
// −1: centred, where the norm centres, and divided by the scale of the pass, or, for the final
// norm, by that of each part itself, as if it were the stream (the logit lens). Without the norm's
// gain and bias. Throws Error{invalid_argument} for the latter before another norm.
enum class NormScale { of_pass, of_each_part };
Array normalised_stack(const Activations& found, const Array& stack, const StackRequest& request,
                       NormScale scale = NormScale::of_pass);

// What each part contributes to a logit, or to the difference of two, with the final norm's scale
// held: (parts, B, P). One token for all sequences, or one for each.
struct ContributionsTo {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> against{};    // empty: none
  std::vector<std::int64_t> positions{};  // of the stack; empty: all
};
Array logit_contributions(const Activations& found, const Array& stack,
                          const ContributionsTo& logits);

}  // namespace heed
