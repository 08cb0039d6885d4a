#include "scoring/chrf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "scoring/characters.h"
#include "scoring/metric.h"

namespace heed::scoring {
namespace {

// The statistics of one hypothesis against each of its references, a row each.
struct RowsOfReferences {
  std::size_t references = 0;
  std::size_t width = 0;
  std::vector<std::int64_t> values;  // (references, width)

  std::span<std::int64_t> of(std::size_t reference) {
    return std::span(values).subspan(reference * width, width);
  }
};

bool is_ascii_punctuation(char32_t character) {
  return (character >= U'!' && character <= U'/') || (character >= U':' && character <= U'@') ||
         (character >= U'[' && character <= U'`') || (character >= U'{' && character <= U'~');
}

// Words with one punctuation mark taken off: the last one or, without one, the first: "(so)" is
// "(so" and ")".
std::vector<std::u32string> words_and_marks(const std::u32string& text) {
  std::vector<std::u32string> words;
  for (const std::u32string& word : split_at_space(text)) {
    if (word.size() > 1 && is_ascii_punctuation(word.back())) {
      words.push_back(word.substr(0, word.size() - 1));
      words.push_back(word.substr(word.size() - 1));
    } else if (word.size() > 1 && is_ascii_punctuation(word.front())) {
      words.push_back(word.substr(0, 1));
      words.push_back(word.substr(1));
    } else {
      words.push_back(word);
    }
  }
  return words;
}

// Fills three columns for each of `orders`, from column `first` on. Text 0 is the hypothesis, the
// others are its references. N-grams that the reference is too short for are not held against the
// hypothesis.
void count_orders(const std::vector<Units>& texts, int orders, std::size_t first,
                  RowsOfReferences& rows) {
  if (orders == 0) return;
  Ngrams ngrams(texts);
  for (std::size_t order = 0; order < static_cast<std::size_t>(orders); ++order) {
    if (order > 0) ngrams.lengthen();
    const std::vector<std::int64_t> counts = ngrams.counts(0);
    for (std::size_t reference = 0; reference < rows.references; ++reference) {
      const std::span<std::int64_t> columns = rows.of(reference).subspan(first + 3 * order, 3);
      columns[1] = ngrams.size(reference + 1);
      columns[0] = columns[1] > 0 ? ngrams.size(0) : 0;
      columns[2] = common(counts, ngrams.counts(reference + 1));
    }
  }
}

}  // namespace

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  const auto check_range = [](int value, int least, const char* name) {
    require(value >= least && value <= 64, ErrorCode::invalid_argument,
            "chrF's {} must be from {} to 64, not {}", name, least, value);
  };
  check_range(options.character_order, 1, "character order");
  check_range(options.word_order, 0, "word order");
  check_range(options.beta, 1, "beta");
}

std::string Chrf::name() const {
  return fmt::format("chrF{}", options_.beta) +
         std::string(static_cast<std::size_t>(options_.word_order), '+');
}

std::string Chrf::signature(const SignatureContext& context) const {
  return signature_text(context, fmt::format("case:{}|eff:yes|nc:{}|nw:{}|space:no",
                                             options_.lowercase ? "lc" : "mixed",
                                             options_.character_order, options_.word_order));
}

double Chrf::score(std::span<const std::int64_t> statistics) const {
  double precision = 0;
  double recall = 0;
  int orders = 0;
  for (std::size_t i = 0; i + 2 < statistics.size(); i += 3) {
    const auto hypothesis = static_cast<double>(statistics[i]);
    const auto reference = static_cast<double>(statistics[i + 1]);
    const auto match = static_cast<double>(statistics[i + 2]);
    if (hypothesis == 0 || reference == 0) continue;
    precision += match / hypothesis;
    recall += match / reference;
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  const double weight = double(options_.beta) * options_.beta;
  return 100 * (1 + weight) * precision * recall / (weight * precision + recall);
}

// Against the reference that gives the best score; of equals, the first.
void Chrf::compare(const std::string& hypothesis, std::span<const std::string> references,
                   std::span<std::int64_t> statistics) const {
  std::vector<std::u32string> characters;
  std::vector<std::vector<std::u32string>> words;
  const auto add = [&](const std::string& sentence) {
    std::u32string text = to_characters(sentence);
    if (options_.lowercase) text = lower_case(text);
    characters.push_back(without_space(text));
    words.push_back(words_and_marks(text));
  };
  add(hypothesis);
  for (const std::string& reference : references) add(reference);

  RowsOfReferences rows{.references = references.size(), .width = statistics.size()};
  rows.values.resize(rows.references * rows.width);
  count_orders(number_characters(characters), options_.character_order, 0, rows);
  count_orders(number_words(words), options_.word_order,
               3 * static_cast<std::size_t>(options_.character_order), rows);
  double best = -1;
  for (std::size_t reference = 0; reference < rows.references; ++reference) {
    const double candidate = score(rows.of(reference));
    if (candidate <= best) continue;
    best = candidate;
    std::ranges::copy(rows.of(reference), statistics.begin());
  }
}

ChrfScore corpus_chrf(std::span<const std::string> hypotheses,
                      std::span<const std::vector<std::string>> references,
                      const ChrfOptions& options) {
  const Chrf chrf(options);
  return {.score = chrf.score(chrf.statistics({hypotheses, references}).sum()),
          .signature = chrf.signature({.references = std::ssize(references)})};
}

}  // namespace heed::scoring
