// The batches of a run: sequences in shuffled order, each exactly once an epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"
#include "train/settings.h"
#include "train/token_data.h"

namespace heed {

// A run's position in its data; saved with it.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // sequences already taken from this epoch

  bool operator==(const DataPosition&) const = default;
};

// An epoch visits each of its windows exactly once, in a new random order. Windows (settings.h)
// chooses where they begin. A pure function of tokens, settings and position.
class BatchOrder {
 public:
  // `end_of_text` ends documents; -1: the text is one document. Throws Error{invalid_argument} if
  // there are too few tokens for a single window.
  BatchOrder(const TokenSequence& tokens, std::int32_t end_of_text, const TrainSettings& settings);

  // First token of the window at `position`, which moves on to the next. A window that begins near
  // the end of the text may have fewer than sequence_length + 1 tokens left, but at least two.
  std::int64_t next(DataPosition& position) const;

  std::int64_t windows(std::int64_t epoch) const;

 private:
  std::int64_t phase(std::int64_t epoch) const;
  std::int64_t left_out(std::int64_t epoch, std::int64_t window) const;

  std::int64_t tokens_;
  std::int64_t sequence_length_;
  std::uint64_t seed_;
  Windows kind_;
  std::vector<std::int64_t> starts_;  // of documents; empty for Windows::stream
};

// Sequences [begin, end) of every batch: those that this process of a group computes.
struct BatchShare {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

// The batches of a run, window after window.
class BatchReader {
 public:
  // Borrows the tokens. Throws Error{invalid_argument} for a text too short for a window.
  BatchReader(const TokenData& data, const TrainSettings& settings, const BatchShare& share);

  // Reads the share of the batch at `position`, which moves on to the next batch.
  void read(DataPosition& position);

  // Those of the share's b sequences.
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
