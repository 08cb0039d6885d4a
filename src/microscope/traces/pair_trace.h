// Selected points of a pass over a pair of texts, as named arrays.
#pragma once

#include <cstdint>

#include "heed/trace.h"
#include "microscope/traces/pair_pass.h"

namespace heed {

// As a TraceRequest of one text; its positions are those of the target. Points of the encoder, and
// keys of cross-attention, have those of the source.
struct PairTraceRequest {
  TraceRequest points{};
  std::vector<std::int64_t> source_positions{};  // empty: all; −1 is the last
};

// `tokens` of the result are those of the target. Throws Error{invalid_argument} for points,
// layers, heads and positions that are not there and a trace beyond its budget, and
// Error{unsupported} for gradients.
Trace trace_pair(const PairPass& pass, const PairTraceRequest& request);

}  // namespace heed
