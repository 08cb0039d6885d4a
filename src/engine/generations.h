// Generations of the facade: token by token (heed/generation.h), and traced.
#pragma once

#include <cstdint>
#include <span>

#include "heed/trace.h"
#include "model/editor.h"
#include "model/transformer.h"

namespace heed {

// As Model::trace_generation(); `editor` (or null) edits the passes.
Trace trace_generation(const Transformer& transformer, std::span<const std::int32_t> prompt,
                       std::int64_t new_tokens, const TraceRequest& request,
                       Editor* editor = nullptr);

}  // namespace heed
