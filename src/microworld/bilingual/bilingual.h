// The microworld told in two languages: pairs of sentences with the true alignment of their words
// and exact probabilities.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "microworld/bilingual/sentence_writer.h"
#include "microworld/bilingual/words.h"

namespace heed::microworld::bilingual {

// A sentence in English and in German, with the truth about both.

// A word of the English sentence and one of the German, by index.
struct Link {
  std::size_t english = 0;
  std::size_t german = 0;

  friend auto operator<=>(const Link&, const Link&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Pair {
  std::int64_t index = -1;
  WrittenSentence english;
  WrittenSentence german;
  std::vector<Link> sure;                // sorted
  std::vector<Link> possible;            // sorted; none of them sure
  double english_log_probability = 0.0;  // natural logarithms: of the English sentence,
  double german_log_probability = 0.0;   // and of the German one given the English
};

// Fills in the links from the concepts of the words.
void align(Pair& pair);

// "0-0 1-2": one line of Pharaoh's format, without the newline.
std::string pharaoh_line(const std::vector<Link>& links);

// The pair as one line of JSON, without the newline.
std::string to_json_line(const Pair& pair);

class Bilingual {
 public:
  explicit Bilingual(std::uint64_t seed, const Grammar& grammar = whole_grammar())
      : seed_(seed), grammar_(grammar) {}

  // Pair `index` of this seed, a pure function of the two and the grammar. Throws
  // Error{invalid_argument} when index < 0.
  Pair pair(std::int64_t index) const;

  std::uint64_t seed() const { return seed_; }

 private:
  std::uint64_t seed_;
  const Grammar& grammar_;
};

// A pair told with the choices of a chooser. Throws DeadEnd if the chooser follows a text and the
// sentences cannot become it.
Pair tell_pair(Chooser& english, Chooser& german, const Grammar& grammar = whole_grammar());

// The natural logarithm of the probability of the German sentence given the English one: the sum
// over all derivations of both, divided by the sum over those of the English. Minus infinity if the
// grammar cannot make the pair.
struct PairProbability {
  double english = 0.0;
  double german_given_english = 0.0;
  std::size_t english_derivations = 0;
  std::size_t pair_derivations = 0;
};

PairProbability pair_probability(std::string_view english, std::string_view german,
                                 const Grammar& grammar = whole_grammar());

// The pair of two given sentences with its alignment, by its most likely derivation; nothing if the
// grammar cannot make it.
std::optional<Pair> read_pair(std::string_view english, std::string_view german,
                              const Grammar& grammar = whole_grammar());

// Writes many sentence pairs, in parallel and in order: as aligned files for training, or as JSON.

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
