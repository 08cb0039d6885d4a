// The minimum cost of an encoder-decoder's work, as benchmark_cost.h has that of decoders.
#pragma once

#include "engine/benchmark_cost.h"

namespace heed {

// Pairs of texts, all of one length.
struct PairShape {
  std::int64_t pairs = 1;    // B
  std::int64_t sources = 1;  // S: tokens of a source
  std::int64_t targets = 1;  // T: tokens of a target
};

// Forward, backward and update, with the logits of every target token.
WorkCost pair_step_cost(const Architecture& architecture, const PairShape& shape);

// The encoder, and the keys and values that cross-attention reads, projected into a cache.
WorkCost encoding_cost(const Architecture& architecture, const RunFormats& formats,
                       const PairShape& shape);

// Encoding, then T steps of decoding, the first of B hypotheses and the others of B times `beams`.
// Hypotheses of one source read its keys and values together.
WorkCost translation_cost(const Architecture& architecture, const RunFormats& formats,
                          const PairShape& shape, std::int64_t beams);

}  // namespace heed
