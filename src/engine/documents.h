// What the command line and the server both report, as JSON documents.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "generate/sampler.h"
#include "microscope/head_statistics.h"
#include "microscope/text_words.h"
#include "microscope/word_walk.h"

namespace heed {

OrderedJson vector_json(std::span<const float> vector);

// A head's numbers, `score` that by which it was ranked.
OrderedJson head_statistics_json(const RankedHead& head);

OrderedJson pattern_json(View<const float> pattern);  // [T][T]

// `bytes` are those of each token of the text; `word` is null where the walk is a single token's.
OrderedJson word_walk_json(std::span<const std::string> bytes, const TextWord* word,
                           const WordWalk& walk);

// A token that may come next, with what each step of sampling makes of it.
OrderedJson candidate_json(const LoadedModel& model, const Candidate& candidate);

// Where the parameters of a model of that shape are, and what it costs.
OrderedJson parameter_count_json(const std::string& name, const GptConfig& config);

}  // namespace heed
