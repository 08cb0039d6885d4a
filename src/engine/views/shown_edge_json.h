// The edge of attention that is shown for a word, as JSON.
#pragma once

#include <cstdint>
#include <span>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "microscope/intervene/edge_effects.h"

namespace heed {

// {"layer", "head", "query", "key": {"begin", "end", "text"}, "weight", "cut", "direct",
// "replaced", "others": {"count", "cut"}, "threshold", "decides", "word_cut", "likeliest",
// "likeliest_without", "gained", "measured", "positions_read"}: see ShownEdge. Tokens are {"token",
// "before", "after"}; what was not measured is null.
OrderedJson shown_edge_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                            const ShownEdge& shown);

}  // namespace heed
