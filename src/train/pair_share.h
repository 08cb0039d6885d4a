// What a process of a group computes of a batch of pairs.
#pragma once

#include "train/pair_rows.h"

namespace heed {

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
