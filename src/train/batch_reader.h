// The batches of a run, window after window.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"
#include "train/batch_order.h"
#include "train/settings.h"
#include "train/token_data.h"

namespace heed {

// Sequences [begin, end) of every batch: those that this process of a group computes.
struct BatchShare {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

class BatchReader {
 public:
  // Borrows the tokens. Throws Error{invalid_argument} for a text too short for a window.
  BatchReader(const TokenData& data, const TrainSettings& settings, const BatchShare& share);

  // Reads the share of the batch at `position`, which moves on to the next batch.
  void read(DataPosition& position);

  // Of the share's b sequences.
  View<const std::int32_t> tokens() const { return tokens_; }  // (b, T)
  // (b, T): the token after each, ignored_target past the end
  View<const std::int32_t> targets() const { return targets_; }

 private:
  const TokenData& data_;
  BatchOrder order_;
  std::int64_t batch_size_;
  BatchShare share_;
  Tensor<std::int32_t> tokens_;
  Tensor<std::int32_t> targets_;
};

}  // namespace heed
