// Passes of a translator over a pair of texts, with hooks at the points of both of its stacks and
// activations that can be read afterwards.
//
//   std::vector<std::int32_t> source = translator.encode("A dog runs.");
//   std::vector<std::int32_t> target = heed::decoder_tokens(translator, "Ein Hund rennt.");
//   heed::Activations found = heed::record(translator, {source, target});
//   found.at("encoder.2.hook_resid_post");                                 // (1, M, C)
//   found.attention("decoder.1.cross_attn.hook_pattern", {.query_end = 6, .key_end = 5});
//
// Points are those of the command line, with their shapes, in docs/notation.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/activations.h"
#include "heed/attention.h"
#include "heed/explain.h"
#include "heed/heed.h"

namespace heed {

// What both stacks read. `target` has the decoder's start in front: position t has read tokens 0 to
// t and predicts token t + 1, the last one the end.
struct SourceAndTarget {
  std::span<const std::int32_t> source;  // (M)
  std::span<const std::int32_t> target;  // (T)

  // No aggregate, which {tokens} of a TokenBatch would be as well.
  SourceAndTarget(std::span<const std::int32_t> sources, std::span<const std::int32_t> targets)
      : source(sources), target(targets) {}
};

// All of these throw Error{unsupported} for a model of one stack, Error{invalid_argument} for
// tokens that do not fit the stacks, and what run() of one text throws. Gradients are of a target,
// or of the mean loss of the tokens after each position of the decoder.

// Logits (1, T, V) of the token after every position of the target.
Array run(const Model& translator, const SourceAndTarget& pair, const RunOptions& options = {});
// (B, T, V) of several pairs, of any lengths, as run() of texts says.
Array run(const Model& translator, std::span<const SourceAndTarget> pairs,
          const RunOptions& options = {});
// (1, T): of the tokens of the target after the first, and of the end. In nats.
Array next_token_losses(const Model& translator, const SourceAndTarget& pair,
                        const RunOptions& options = {});
Array next_token_losses(const Model& translator, std::span<const SourceAndTarget> pairs,
                        const RunOptions& options = {});  // (B, T)
// The same from logits (1, T, V), of any tokens (T) that follow.
Array losses_of_next(const Array& logits, std::span<const std::int32_t> next);
// What is to be predicted after each token that the decoder reads; −1: nothing.
std::vector<std::int32_t> tokens_after(const Model& translator,
                                       std::span<const std::int32_t> target);
// As of texts.
Activations record(const Model& translator, const SourceAndTarget& pair,
                   const RecordRequest& request = {}, const RunOptions& options = {});
Activations record(const Model& translator, std::span<const SourceAndTarget> pairs,
                   const RecordRequest& request = {}, const RunOptions& options = {});

// The logit lens on the decoder's stream, [layer][position of the target]: as of a text.
std::vector<std::vector<LayerPrediction>> logit_lens(const Model& translator,
                                                     const SourceAndTarget& pair,
                                                     std::int64_t top = 5);
// Of every head of a kind of attention: "encoder", "decoder" or "cross". Numbers that a kind has
// not are zero.
std::vector<HeadSummary> heads(const Model& translator, const SourceAndTarget& pair,
                               std::string_view kind);

// A text as the decoder reads it: its start, the tokens with which its texts begin, the text.
std::vector<std::int32_t> decoder_tokens(const Model& translator, std::string_view text);
std::vector<std::int32_t> decoder_tokens(const Model& translator,
                                         std::span<const std::int32_t> tokens);
// The most likely token each time, up to `max_length` (0: as many as fit after the start). Hooks
// see the source once, then one position of the target in each step (HookedPoint::first_position
// tells which).
Model::Hypothesis translate_greedily(const Model& translator, std::span<const std::int32_t> source,
                                     std::int64_t max_length = 0, const RunOptions& options = {});

}  // namespace heed
