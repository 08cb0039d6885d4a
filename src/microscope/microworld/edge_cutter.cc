#include "microscope/microworld/edge_cutter.h"

#include <algorithm>
#include <span>

namespace heed {
namespace {

void normalise(std::span<float> row) {
  double sum = 0;
  for (const float share : row) sum += share;
  if (sum <= 0) return;
  for (float& share : row) share = static_cast<float>(share / sum);
}

}  // namespace

void EdgeCutter::edit(const EditedPoint&, View<float> values) {
  const View<float> pattern = values[0][0];
  std::vector<bool> is_cut(static_cast<std::size_t>(pattern.extent(0)), false);
  for (const EdgeBlock& block : blocks_) {
    for (std::int64_t t = block.queries.begin; t < block.queries.end; ++t) {
      // Masked weights are zero already.
      for (std::int64_t s = block.keys.begin; s < std::min(block.keys.end, pattern.extent(1));
           ++s) {
        if (pattern(t, s) == 0) continue;
        pattern(t, s) = 0;
        is_cut[static_cast<std::size_t>(t)] = true;
      }
    }
  }
  for (std::int64_t t = 0; t < pattern.extent(0); ++t) {
    if (is_cut[static_cast<std::size_t>(t)]) normalise(pattern[t].span());
  }
}

}  // namespace heed
