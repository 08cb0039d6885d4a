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

// {"token", "probability", "graph_neurons", "paths": [{"from", "token", "layer", "position",
//  "neurons", "share", "without", "instead", "instead_probability", "controls", "control",
//  "cause"}]}, of the paths to the likeliest token after `tokens`
OrderedJson causes_json(const LoadedModel& model, std::span<const std::int32_t> tokens,
                        const WordCauses& causes);

}  // namespace heed
