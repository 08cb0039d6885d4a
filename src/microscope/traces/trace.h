// One pass over a text, looked at.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "microscope/traces/capture.h"
#include "model/gpt.h"

namespace heed {

// Reads `tokens` as one sequence and keeps the points asked for, each with B = 1. Throws
// Error{invalid_argument} for no tokens, unknown ids and more tokens than the model's context.
Capture trace(const Gpt& gpt, std::span<const std::int32_t> tokens, std::vector<Site> sites);

// Shows the pattern of each layer in turn, (H, T, T), and keeps none.
void visit_patterns(const Gpt& gpt, std::span<const std::int32_t> tokens,
                    const std::function<void(std::int64_t layer, View<const float>)>& visit);

// The patterns of all layers, each (H, T, T).
Capture trace_patterns(const Gpt& gpt, std::span<const std::int32_t> tokens);
std::vector<View<const float>> patterns_of(const Capture& capture, std::int64_t layers);

}  // namespace heed
