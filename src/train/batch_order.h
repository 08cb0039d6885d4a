// The order of training sequences: shuffled, each exactly once an epoch.
#pragma once

#include <cstdint>
#include <vector>

#include "train/settings.h"
#include "train/token_sequence.h"

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

}  // namespace heed
