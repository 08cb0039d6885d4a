#include "train/pair_rows.h"

#include <algorithm>

namespace heed {
namespace {

void read_pair_side(const PairData& data, std::span<const std::int64_t> pairs, PairSide side,
                    std::vector<std::int32_t>& tokens, std::vector<std::int64_t>& starts) {
  starts.assign(1, 0);
  for (const std::int64_t pair : pairs) starts.push_back(starts.back() + data.length(side, pair));
  tokens.resize(static_cast<std::size_t>(starts.back()));
  for (std::size_t b = 0; b < pairs.size(); ++b) {
    const auto begin = static_cast<std::size_t>(starts[b]);
    const auto count = static_cast<std::size_t>(starts[b + 1]) - begin;
    data.read(side, pairs[b], std::span(tokens).subspan(begin, count));
  }
}

}  // namespace

void PairRows::read(const PairData& data, std::span<const std::int64_t> pairs,
                    std::int32_t decoder_start) {
  read_pair_side(data, pairs, PairSide::source, source_, source_starts_);
  read_pair_side(data, pairs, PairSide::target, next_, target_starts_);
  target_.resize(next_.size());
  for (std::size_t b = 0; b + 1 < target_starts_.size(); ++b) {
    const std::int64_t begin = target_starts_[b], end = target_starts_[b + 1];
    target_[static_cast<std::size_t>(begin)] = decoder_start;
    std::copy(next_.begin() + begin, next_.begin() + end - 1, target_.begin() + begin + 1);
  }
}

}  // namespace heed
