// What all scores of translations have in common: each sentence gives integers, and the score of a
// corpus is a function of their sums. Resampling a corpus therefore adds integers and compares no
// text again.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed::scoring {

// Translations, and one or more sets of references: references[r][i] translates what hypotheses[i]
// does.
struct ScoredTexts {
  std::span<const std::string> hypotheses;
  std::span<const std::vector<std::string>> references;
};

// `width` integers for each sentence.
struct SentenceStatistics {
  std::int64_t width = 0;
  std::vector<std::int64_t> values;  // (sentences, width)

  std::int64_t sentences() const { return width == 0 ? 0 : std::ssize(values) / width; }
  std::span<const std::int64_t> of(std::int64_t sentence) const;
  std::vector<std::int64_t> sum() const;
};

// What a signature says of the corpus and of the test, beside the metric's own options.
struct SignatureContext {
  std::int64_t references = 1;
  std::optional<std::int64_t> bootstrap_samples;
  std::uint64_t seed = 0;  // of the bootstrap
};

class Metric {
 public:
  virtual ~Metric() = default;

  virtual std::string name() const = 0;  // "BLEU", "chrF2", "chrF2++"

  // The options that decide a score, as sacreBLEU writes them; the version is heed's.
  virtual std::string signature(const SignatureContext& context) const = 0;

  // From 0 to 100, of the sums of statistics; with one sentence's, that sentence's score.
  virtual double score(std::span<const std::int64_t> statistics) const = 0;

  // Throws Error{invalid_argument} where there are no sentences or no references, or where a set of
  // references has another number of lines than the hypotheses.
  SentenceStatistics statistics(const ScoredTexts& texts) const;

 protected:
  virtual std::int64_t width() const = 0;
  virtual void compare(const std::string& hypothesis, std::span<const std::string> references,
                       std::span<std::int64_t> statistics) const = 0;
};

// "nrefs:1|bs:1000|seed:12345|OPTIONS|version:heed-0.2.0".
std::string signature_text(const SignatureContext& context, const std::string& options);

// The n-grams of a few texts: a sentence and what it is compared with.

// A text as numbers of its words or characters.
using Units = std::vector<std::uint32_t>;

// Numbers words so that equal words of all texts have equal numbers.
std::vector<Units> number_words(std::span<const std::vector<std::u32string>> texts);
std::vector<Units> number_characters(std::span<const std::u32string> texts);

// Numbers the n-grams of `texts`, first those of one unit, so that equal n-grams have equal
// numbers.
class Ngrams {
 public:
  explicit Ngrams(std::vector<Units> texts);

  // To the n-grams of one unit more.
  void lengthen();

  // How many n-grams a text has, repetitions included.
  std::int64_t size(std::size_t text) const { return std::ssize(numbers_[text]); }

  // How often each n-gram occurs in a text, by number.
  std::vector<std::int64_t> counts(std::size_t text) const;

 private:
  void number(const std::vector<std::vector<std::uint64_t>>& keys);

  std::vector<Units> texts_;
  std::size_t order_ = 1;
  std::vector<Units> numbers_;  // of each text's n-grams, by position
  std::size_t distinct_ = 0;
};

// The n-grams that two texts have in common: the smaller count of each.
std::int64_t common(std::span<const std::int64_t> counts, std::span<const std::int64_t> others);

// Files of sentences, one a line.

// The lines of a text without white space at their ends, such as a carriage return; a newline at
// the end of the text ends its last line. `source` names the text in messages. Throws
// Error{invalid_argument} for an empty text, Error{corrupt_data} with the line's number where one
// is not UTF-8.
std::vector<std::string> read_sentences(std::string_view text, std::string_view source);

}  // namespace heed::scoring
