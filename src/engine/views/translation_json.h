// JSON documents about translations, shared by the command line and the server.
#pragma once

#include <span>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "microscope/attention/alignment.h"
#include "microscope/intervene/pair_effects.h"

namespace heed {

// [{"target", "source", "weight"}], counted in words
OrderedJson aligned_words_json(std::span<const AlignedWord> links);

// {"layer", "head", "error_rate", "precision", "recall"}, the best first.
OrderedJson head_alignments_json(std::vector<HeadAlignment> heads);

// {"text", "tokens", "finished", "log_probability"}
OrderedJson greedy_translation_json(const LoadedModel& translator,
                                    const GreedyTranslation& translation);

// {"text", "score", "log_probability", "finished", "tokens": [{"id", "text"}]}; the end of a
// translation is one of its tokens.
OrderedJson hypothesis_json(const LoadedModel& translator, const TokenHypothesis& hypothesis);

}  // namespace heed
