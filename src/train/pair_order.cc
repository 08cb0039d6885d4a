#include "train/pair_order.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace heed {
namespace {

// Streams of the run's seed that no other use of it shares.
constexpr std::uint64_t pair_stream = std::uint64_t{0x70616972} << 32;
constexpr std::uint64_t pair_batch_stream = std::uint64_t{0x62617463} << 32;

// Lengths in tokens that count as similar: attention costs the square of a length, and a step of
// short sentences only is another kind of step than one of long ones.
constexpr std::int64_t bucket_width = 8;

}  // namespace

std::span<const std::int64_t> PairBatches::batch(std::int64_t b) const {
  const auto begin = static_cast<std::size_t>(starts[static_cast<std::size_t>(b)]);
  const auto end = static_cast<std::size_t>(starts[static_cast<std::size_t>(b) + 1]);
  return std::span(pairs).subspan(begin, end - begin);
}

PairBatches cut_batches(const PairData& data, std::vector<std::int64_t> pairs,
                        std::int64_t batch_tokens) {
  PairBatches batches{.pairs = std::move(pairs)};
  std::int64_t source = 0, target = 0;
  for (std::int64_t i = 0; i < std::ssize(batches.pairs); ++i) {
    const std::int64_t pair = batches.pairs[static_cast<std::size_t>(i)];
    const std::int64_t more_source = data.length(PairSide::source, pair);
    const std::int64_t more_target = data.length(PairSide::target, pair);
    const bool is_full = source + more_source > batch_tokens || target + more_target > batch_tokens;
    if (is_full && i > batches.starts.back()) {
      batches.starts.push_back(i);
      source = target = 0;
    }
    source += more_source;
    target += more_target;
  }
  if (!batches.pairs.empty()) batches.starts.push_back(std::ssize(batches.pairs));
  return batches;
}

PairOrder::PairOrder(const PairData& data, std::int64_t batch_tokens, std::uint64_t seed)
    : data_(data), batch_tokens_(batch_tokens), seed_(seed) {
  check(data.size() > 0, "there are pairs to order");
}

const PairBatches& PairOrder::of_epoch(std::int64_t epoch) {
  if (epoch == epoch_) return batches_;
  const Permutation shuffled(static_cast<std::uint64_t>(data_.size()), seed_,
                             pair_stream + static_cast<std::uint64_t>(epoch));
  // Ranks are distinct, so the order is the same with every sorting algorithm.
  struct Key {
    std::int64_t bucket;
    std::uint64_t rank;
    std::int64_t pair;
  };
  std::vector<Key> keys;
  keys.reserve(static_cast<std::size_t>(data_.size()));
  for (std::int64_t pair = 0; pair < data_.size(); ++pair) {
    const std::int64_t longer =
        std::max(data_.length(PairSide::source, pair), data_.length(PairSide::target, pair));
    keys.push_back({longer / bucket_width, shuffled(static_cast<std::uint64_t>(pair)), pair});
  }
  std::ranges::sort(keys, [](const Key& a, const Key& b) {
    return a.bucket != b.bucket ? a.bucket < b.bucket : a.rank < b.rank;
  });
  std::vector<std::int64_t> pairs;
  pairs.reserve(keys.size());
  for (const Key& key : keys) pairs.push_back(key.pair);
  batches_ = cut_batches(data_, std::move(pairs), batch_tokens_);
  epoch_ = epoch;
  return batches_;
}

std::int64_t PairOrder::batches(std::int64_t epoch) { return of_epoch(epoch).count(); }

std::span<const std::int64_t> PairOrder::next(DataPosition& position) {
  if (position.index >= batches(position.epoch)) position = {position.epoch + 1, 0};
  const PairBatches& epoch = of_epoch(position.epoch);
  const Permutation order(static_cast<std::uint64_t>(epoch.count()), seed_,
                          pair_batch_stream + static_cast<std::uint64_t>(position.epoch));
  return epoch.batch(
      static_cast<std::int64_t>(order(static_cast<std::uint64_t>(position.index++))));
}

}  // namespace heed
