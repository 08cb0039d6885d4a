// What the model does without nodes of an attribution graph (heed/graphs.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/graphs.h"
#include "model/transformer.h"

namespace heed {

std::vector<NodeEffect> switch_off_effects(const Transformer& model, const AttributionGraph& graph,
                                           std::size_t count);

WordCauses word_causes(const Transformer& model, std::span<const std::int32_t> tokens,
                       const CauseOptions& options);

}  // namespace heed
