// A batch of pairs in memory, as EncoderDecoder takes it: sequences one below the other, without
// padding.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/encoder_decoder.h"
#include "train/pair_data.h"

namespace heed {

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

}  // namespace heed
