// The batches of pairs: shuffled, each pair exactly once an epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/batch_order.h"
#include "train/pair_data.h"

namespace heed {

// Which pairs form a batch: the numbers of batch b are pairs[starts[b], starts[b + 1]).
struct PairBatches {
  std::vector<std::int64_t> pairs;
  std::vector<std::int64_t> starts{0};

  std::int64_t count() const { return std::ssize(starts) - 1; }
  std::span<const std::int64_t> batch(std::int64_t b) const;
};

// Cuts `pairs`, in their order, into batches whose sources and whose targets each have at most
// batch_tokens tokens in all.
PairBatches cut_batches(const PairData& data, std::vector<std::int64_t> pairs,
                        std::int64_t batch_tokens);

// Every epoch puts pairs of similar length side by side, in a new random order, cuts batches, and
// takes the batches in a random order. A pure function of the data's lengths, seed and position; it
// remembers the batches of one epoch.
class PairOrder {
 public:
  PairOrder(const PairData& data, std::int64_t batch_tokens, std::uint64_t seed);

  // The pairs of the batch at `position`, which moves on to the next; valid until the next call.
  std::span<const std::int64_t> next(DataPosition& position);

  std::int64_t batches(std::int64_t epoch);

 private:
  const PairBatches& of_epoch(std::int64_t epoch);

  const PairData& data_;
  std::int64_t batch_tokens_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  PairBatches batches_;
};

}  // namespace heed
