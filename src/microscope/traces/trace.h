// Selected points of a pass over one text.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "microscope/traces/capture.h"
#include "model/transformer.h"

namespace heed {

// Runs the model on `tokens` as one sequence and captures `points`, each with B = 1. Throws
// Error{invalid_argument} for no tokens, unknown ids and more tokens than the model's context.
Capture trace(const Transformer& gpt, std::span<const std::int32_t> tokens,
              std::vector<Point> points);

// Calls `visit` with the pattern of each layer in turn, (H, T, T); none is kept.
void visit_patterns(const Transformer& gpt, std::span<const std::int32_t> tokens,
                    const std::function<void(std::int64_t layer, View<const float>)>& visit);

// The patterns of all layers, each (1, H, T, T).
Capture trace_patterns(const Transformer& gpt, std::span<const std::int32_t> tokens);

}  // namespace heed
