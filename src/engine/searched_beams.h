// A beam search of one source with everything that it looked at.
#pragma once

#include <span>
#include <vector>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "generate/beam_search.h"

namespace heed {

struct SearchedBeams {
  BeamOptions options;  // as used
  BeamTree tree;
  std::vector<TokenHypothesis> hypotheses;  // as many as there are beams, the best first
};

// Generates only tokens that the target's tokenizer has. Throws what beam_search throws.
SearchedBeams search_beams(const LoadedModel& model, std::span<const std::int32_t> source,
                           BeamOptions options);

// {"beams", "length_penalty", "max_length",
//  "nodes": [{"id", "parent", "step", "token", "log_probability", "sum", "state"}],
//  "hypotheses": [{"node", "score", "log_probability", "finished", "text", "tokens"}]}
OrderedJson searched_beams_json(const LoadedModel& model, const SearchedBeams& searched);

}  // namespace heed
