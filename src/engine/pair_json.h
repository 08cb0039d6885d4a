// JSON documents about pairs of texts, shared by the command line and the server.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_translator.h"
#include "microscope/attention/alignment.h"
#include "microscope/explain/logit_lens.h"

namespace heed {

OrderedJson pair_token_json(const LoadedTranslator& model, PairSide side, std::int32_t id);
OrderedJson pair_tokens_json(const LoadedTranslator& model, PairSide side,
                             std::span<const std::int32_t> ids);

// {"tokens": [{"id", "text"}], "words": [{"text", "begin", "end"}]}
OrderedJson pair_text_json(const LoadedTranslator& model, PairSide side,
                           std::span<const std::int32_t> ids);

// [{"target", "source", "weight"}], counted in words
OrderedJson aligned_words_json(std::span<const AlignedWord> links);

// {"layer", "head", "error_rate", "precision", "recall"}, the best first.
OrderedJson head_alignments_json(std::vector<HeadAlignment> heads);

// {"position", "moved", "actual": {"token", "before", "after"} or null} of each position.
OrderedJson pair_effects_json(const LoadedTranslator& model, std::span<const PairEffect> effects);

// {"text", "tokens", "finished", "log_probability"}
OrderedJson greedy_translation_json(const LoadedTranslator& model,
                                    const GreedyTranslation& translation);

// {"point", "top": [{"token", "probability"}], "entropy"} of each point, at one position.
OrderedJson pair_lens_json(const LoadedTranslator& model, const LogitLens& lens);

// The `top` most likely tokens: [{"token", "probability"}].
OrderedJson likeliest_tokens_json(const LoadedTranslator& model,
                                  std::span<const double> probabilities, std::int64_t top);

}  // namespace heed
