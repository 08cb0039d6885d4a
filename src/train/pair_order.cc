#include "train/pair_order.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "kernels/kernels.h"

namespace heed {
namespace {

// Streams of the run's seed that no other use of it shares.
constexpr std::uint64_t pair_stream = std::uint64_t{0x70616972} << 32;
constexpr std::uint64_t pair_batch_stream = std::uint64_t{0x62617463} << 32;

// Lengths in tokens that count as similar: attention costs the square of a length, and a step of
// short sentences only is another kind of step than one of long ones.
constexpr std::int64_t bucket_width = 8;

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

void PairShare::read(const PairData& data, std::span<const std::int64_t> pairs,
                     const Options& options) {
  const auto tokens = [&](std::int64_t pair) {
    return data.length(PairSide::source, pair) + data.length(PairSide::target, pair);
  };
  const std::int64_t count = std::ssize(pairs), processes = options.processes;
  std::int64_t all = 0;
  all_targets_ = 0;
  for (const std::int64_t pair : pairs) {
    all += tokens(pair);
    all_targets_ += data.length(PairSide::target, pair);
  }
  // A pair belongs to the process in whose part of all tokens its middle lies.
  std::int64_t before = 0, begin = count, end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t middle = 2 * before + tokens(pairs[static_cast<std::size_t>(i)]);
    if (middle * processes / (2 * all) == options.rank) {
      begin = std::min(begin, i);
      end = i + 1;
    }
    before += tokens(pairs[static_cast<std::size_t>(i)]);
  }
  nothing_.clear();
  const bool is_idle = begin >= end;
  if (is_idle) {
    begin = count - 1;
    end = count;
  }
  place_ = {.sequence = begin};
  for (std::int64_t i = 0; i < begin; ++i) {
    place_.source_row += data.length(PairSide::source, pairs[static_cast<std::size_t>(i)]);
    place_.target_row += data.length(PairSide::target, pairs[static_cast<std::size_t>(i)]);
  }
  rows_.read(data,
             pairs.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
             options.decoder_start);
  if (is_idle) {
    nothing_.assign(static_cast<std::size_t>(rows_.targets()), kernels::ignored_target);
  }
}

PairBatch PairShare::batch() const {
  PairBatch batch = rows_.batch();
  if (!nothing_.empty()) batch.next = nothing_;
  return batch;
}

}  // namespace heed
