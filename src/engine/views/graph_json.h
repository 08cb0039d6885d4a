// Attribution graphs in JSON, as the viewers of circuit-tracer and Neuronpedia read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/json_fwd.h"
#include "engine/loaded_model.h"
#include "heed/graphs.h"

namespace heed {

OrderedJson graph_json(const LoadedModel& model, const AttributionGraph& graph,
                       const std::string& prompt);

// What a feature of the model's transcoders answers to: {"words": [{"token", "contexts"}],
// "context": [token], "of": how many contexts}: the tokens at the peaks of its strongest contexts,
// the most frequent first, and the strongest one up to its peak. All empty where heed has no names
// for it.
OrderedJson feature_name_json(const LoadedModel& model, std::int64_t layer, std::int64_t feature);

// {"token", "probability", "unit", "graph_units", "paths": [{"from", "token", "layer", "position",
//  "neurons", "features", "share", "without", "instead", "instead_probability", "controls",
//  "control", "cause"}]}, of the paths to the likeliest token after `tokens`; "features":
//  [{"feature", "activation", and what feature_name_json gives}], `named` where they are the
//  carried ones
enum class FeatureNames { carried, none };
OrderedJson causes_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                        const WordCauses& causes, FeatureNames named = FeatureNames::none);

}  // namespace heed
