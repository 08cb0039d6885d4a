// Writes many sentence pairs, in parallel and in order: as aligned files for training, or as JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/progress.h"
#include "microworld/bilingual/bilingual.h"

namespace heed::microworld::bilingual {

// Mean negative log-probability, which estimates the entropy, with its standard error.
class EntropyEstimate {
 public:
  void add(double log_probability);

  double nats() const;  // 0 without sentences
  double standard_error() const;
  std::int64_t count() const { return count_; }

 private:
  std::int64_t count_ = 0;
  double sum_ = 0.0;
  double squares_ = 0.0;
};

// What a range of pairs amounts to.
struct PairSummary {
  EntropyEstimate german_given_english;  // per pair
  EntropyEstimate english;
  std::int64_t english_words = 0;  // commas and final marks are words
  std::int64_t german_words = 0;
  std::int64_t sure_links = 0;
  std::int64_t possible_links = 0;
};

struct PairRange {
  std::int64_t begin = 0;  // pairs [begin, end) of the seed
  std::int64_t end = 0;
  ProgressCallback progress = nullptr;
  StopFlag stop = nullptr;
};

using PairSink = std::function<void(const Pair&)>;

// Gives the pairs to the sink in order. Throws Error{invalid_argument} unless 0 <= begin <= end,
// and Error{interrupted} on request, after whole pairs.
PairSummary tell_pairs(const Bilingual& world, const PairRange& range, const PairSink& sink);

// Writes DIRECTORY/NAME.en and NAME.de (a sentence a line), NAME.align and NAME.possible (the links
// of the pair in Pharaoh's format). Files appear only when all four are complete.
PairSummary write_pair_files(const Bilingual& world, const PairRange& range,
                             const std::string& directory, const std::string& name);

}  // namespace heed::microworld::bilingual
