// The steps from logits to the sampled distribution, shared by the sampler and its reports.
#pragma once

#include <cstdint>
#include <span>

#include "generate/ranking.h"
#include "generate/sampler.h"

namespace heed {

// The logits after penalties. Throws what Sampler::sample throws.
Ranking penalized_ranking(std::span<const float> logits, const SamplingOptions& options,
                          std::span<const std::int32_t> history);

// Each filter keeps a non-empty prefix of the ranking and returns its new length.
struct KeptCounts {
  std::size_t top_k = 0;
  std::size_t top_p = 0;
  std::size_t min_p = 0;
};
KeptCounts apply_filters(Ranking& ranking, const SamplingOptions& options);

}  // namespace heed
