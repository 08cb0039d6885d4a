// What encoder-decoders have beside other models; Model::translate() is in heed/heed.h.
//
//   std::vector<std::int32_t> source = translator.encode("A dog runs.");
//   std::vector<std::int32_t> target = heed::decoder_tokens(translator, "Ein Hund rennt.");
//   heed::Activations found = heed::record(translator, {.tokens = target, .sources = source});
//   found.at("encoder.2.hook_resid_post");                                 // (1, M, C)
//   found.attention("decoder.1.cross_attn.hook_pattern", {.query_end = 6, .key_end = 5});
//
// Points are those of the command line, with their shapes, in docs/notation.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "heed/activations.h"
#include "heed/heed.h"

namespace heed {

// All of these throw Error{unsupported} for a model of one stack, and Error{invalid_argument} for
// tokens that do not fit the stacks.

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
