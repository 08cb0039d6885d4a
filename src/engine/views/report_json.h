// JSON documents shared by the command line and the server.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "generate/sampler.h"
#include "microscope/attention/alignment.h"
#include "microscope/attention/head_statistics.h"
#include "microscope/attention/text_words.h"
#include "microscope/attention/word_walk.h"
#include "microscope/explain/word_directions.h"
#include "microscope/intervene/edge_effects.h"
#include "microscope/intervene/pair_effects.h"
#include "model/architecture.h"

namespace heed {

OrderedJson vector_json(std::span<const float> vector);

// {"name": "previous", "strength": 0.62}
OrderedJson habit_json(const HeadHabitStrength& habit);
// The statistics of a head, and its habit.
// {"kind", "layer", "head", …, "habit"}; null for statistics that the kind of attention has not.
OrderedJson head_statistics_json(const RankedHead& head);

OrderedJson pattern_json(View<const float> pattern);  // [T][T]

// `bytes` holds the bytes of each token of the text; `word` is null for the walk of a single token.
OrderedJson word_walk_json(std::span<const std::string> bytes, const TextWord* word,
                           const WordWalk& walk);

// A candidate for the next token, with its probability after each step of sampling.
OrderedJson candidate_json(const LoadedModel& model, const Candidate& candidate);
// The same with the bytes of the token.
OrderedJson candidate_json(const std::string& token, const Candidate& candidate);

// The number of parameters by part, and the cost of running and training.
OrderedJson parameter_count_json(const std::string& name, const StackSpecification& config);
// The same of any model; of two stacks, with what each has, and without costs.
OrderedJson parameter_count_json(const std::string& name, const Architecture& architecture);

// What a model is: {"family", "norm", "positions", "key_value_heads", "windows", "gated",
// "activation", "query_key_norm", "residual", "rotary": {"base", "channels", "scaling"}, "biases"};
// "rotary" only where positions are rotary. The family is a checkpoint format's name, or "custom".
OrderedJson architecture_json(const StackSpecification& stack);

// {"tokens": [{"id", "text"}], "words": [{"text", "begin", "end"}], "unread"}
OrderedJson text_json(const LoadedModel& model, std::span<const std::int32_t> ids, PairSide side);

// {"position", "moved", "actual": {"token", "before", "after"} or null} of each position.
OrderedJson effects_json(const LoadedModel& model, std::span<const PredictionEffect> effects);

// Nearest words as the command line and the server write them.

// {"position", "shuffles", "depths": [{"point", "words": [{"token", "cosine"}], "best", "chance"}]}
OrderedJson nearest_words_json(const LoadedModel& model, const NearestWordsByDepth& found);

// The edge of attention that is shown for a word, as JSON.

// {"layer", "head", "query", "key": {"begin", "end", "text"}, "weight", "cut", "direct",
// "replaced", "others": {"count", "cut"}, "threshold", "decides", "word_cut", "likeliest",
// "likeliest_without", "gained", "measured", "positions_read"}: see ShownEdge. Tokens are {"token",
// "before", "after"}; what was not measured is null.
OrderedJson shown_edge_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                            const ShownEdge& shown);

// JSON documents about translations, shared by the command line and the server.

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
