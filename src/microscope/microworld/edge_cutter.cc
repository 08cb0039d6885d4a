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
  for (const EdgeBlock& block : blocks_) {
    for (std::int64_t t = block.queries.begin; t < block.queries.end; ++t) {
      for (std::int64_t s = block.keys.begin; s < std::min(block.keys.end, t + 1); ++s) {
        pattern(t, s) = 0;
      }
    }
  }
  for (const EdgeBlock& block : blocks_) {
    for (std::int64_t t = block.queries.begin; t < block.queries.end; ++t) {
      normalise(pattern[t].span());
    }
  }
}

}  // namespace heed
