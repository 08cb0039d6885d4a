// The batches of pairs: shuffled, each pair exactly once an epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/transformer.h"
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

// A batch of pairs in memory, as Transformer takes it: sequences one below the other, without
// padding.
class PairRows {
 public:
  // The decoder reads `decoder_start` and then the target without its end; it predicts the target.
  void read(const PairData& data, std::span<const std::int64_t> pairs, std::int32_t decoder_start);

  PairBatch batch() const {
    return {
        .source = {source_, source_starts_}, .target = {target_, target_starts_}, .next = next_};
  }
  std::int64_t targets() const { return std::ssize(next_); }

 private:
  std::vector<std::int32_t> source_;
  std::vector<std::int64_t> source_starts_;
  std::vector<std::int32_t> target_;
  std::vector<std::int64_t> target_starts_;
  std::vector<std::int32_t> next_;
};

// What a process of a group computes of a batch of pairs.
class PairShare {
 public:
  struct Options {
    std::int32_t decoder_start = 0;
    int rank = 0;
    int processes = 1;
  };
  // Processes take pairs that follow each other, of about as many tokens each. One to which none
  // falls takes the last pair and predicts none of its tokens.
  void read(const PairData& data, std::span<const std::int64_t> pairs, const Options& options);

  PairBatch batch() const;
  std::int64_t all_targets() const { return all_targets_; }  // of the whole batch

  // Where the share begins in the batch: its number of sequences and of rows before it.
  struct Place {
    std::int64_t sequence = 0;
    std::int64_t source_row = 0;
    std::int64_t target_row = 0;
  };
  const Place& place() const { return place_; }

 private:
  PairRows rows_;
  std::vector<std::int32_t> nothing_;  // targets of a share that predicts none
  std::int64_t all_targets_ = 0;
  Place place_;
};

}  // namespace heed
