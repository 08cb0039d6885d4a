// The batches of a run, window after window.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"
#include "train/batch_order.h"
#include "train/settings.h"
#include "train/token_data.h"

namespace heed {

class BatchReader {
 public:
  // Borrows the tokens. Throws Error{invalid_argument} for a text too short for a window.
  BatchReader(const TokenData& data, const TrainSettings& settings);

  // Reads the batch at `position`, which moves on to the next.
  void read(DataPosition& position);

  View<const std::int32_t> tokens() const { return tokens_; }  // (B, T)
  View<const std::int32_t> targets() const {
    return targets_;
  }  // (B, T): the token after each,
     // ignored_target past the end

 private:
  const TokenData& data_;
  BatchOrder order_;
  Tensor<std::int32_t> tokens_;
  Tensor<std::int32_t> targets_;
};

}  // namespace heed
