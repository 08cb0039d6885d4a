#include "scoring/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "scoring/characters.h"
#include "scoring/ngrams.h"

namespace heed::scoring {
namespace {

std::vector<std::u32string> words_of(const std::string& sentence, const BleuOptions& options) {
  const std::u32string characters = to_characters(sentence);
  return bleu_words(options.lowercase ? lower_case(characters) : characters, options.tokenization);
}

// Of two that are equally close, the shorter one.
std::int64_t closest_length(std::int64_t length, const std::vector<Units>& texts) {
  std::int64_t closest = std::ssize(texts[1]);
  for (std::size_t i = 2; i < texts.size(); ++i) {
    const std::int64_t candidate = std::ssize(texts[i]);
    const std::int64_t distance = std::abs(candidate - length);
    const std::int64_t least = std::abs(closest - length);
    if (distance < least || (distance == least && candidate < closest)) closest = candidate;
  }
  return closest;
}

// An n-gram may be matched as often as the reference that has most of it.
std::int64_t matches_of(const Ngrams& ngrams, std::size_t texts) {
  std::vector<std::int64_t> allowed = ngrams.counts(1);
  for (std::size_t i = 2; i < texts; ++i) {
    const std::vector<std::int64_t> counts = ngrams.counts(i);
    std::ranges::transform(allowed, counts, allowed.begin(),
                           [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  }
  return common(ngrams.counts(0), allowed);
}

double brevity_penalty(const BleuStatistics& statistics) {
  if (statistics.hypothesis_length >= statistics.reference_length) return 1;
  if (statistics.hypothesis_length == 0) return 0;
  return std::exp(1 - static_cast<double>(statistics.reference_length) /
                          static_cast<double>(statistics.hypothesis_length));
}

// A row of SentenceStatistics.
BleuStatistics from_row(std::span<const std::int64_t> row) {
  BleuStatistics statistics{.hypothesis_length = row[0], .reference_length = row[1]};
  std::ranges::copy(row.subspan(2, bleu_orders), statistics.correct.begin());
  std::ranges::copy(row.subspan(2 + bleu_orders, bleu_orders), statistics.total.begin());
  return statistics;
}

}  // namespace

BleuStatistics& BleuStatistics::operator+=(const BleuStatistics& other) {
  hypothesis_length += other.hypothesis_length;
  reference_length += other.reference_length;
  for (std::size_t n = 0; n < bleu_orders; ++n) {
    correct[n] += other.correct[n];
    total[n] += other.total[n];
  }
  return *this;
}

BleuStatistics bleu_statistics(const std::string& hypothesis,
                               std::span<const std::string> references,
                               const BleuOptions& options) {
  require(!references.empty(), ErrorCode::invalid_argument,
          "a sentence has no references; expected at least one");
  std::vector<std::vector<std::u32string>> words{words_of(hypothesis, options)};
  for (const std::string& reference : references) words.push_back(words_of(reference, options));
  const std::vector<Units> texts = number_words(words);

  BleuStatistics statistics{.hypothesis_length = std::ssize(texts[0])};
  statistics.reference_length = closest_length(statistics.hypothesis_length, texts);
  Ngrams ngrams(texts);
  for (std::size_t n = 0; n < bleu_orders; ++n) {
    if (n > 0) ngrams.lengthen();
    statistics.total[n] = ngrams.size(0);
    statistics.correct[n] = matches_of(ngrams, texts.size());
  }
  return statistics;
}

BleuScore bleu_score(const BleuStatistics& statistics, const BleuOptions& options) {
  BleuScore score{.brevity_penalty = brevity_penalty(statistics), .statistics = statistics};
  if (statistics.reference_length > 0) {
    score.length_ratio = static_cast<double>(statistics.hypothesis_length) /
                         static_cast<double>(statistics.reference_length);
  }
  const bool any = std::ranges::any_of(statistics.correct, [](auto count) { return count > 0; });
  if (!any) return score;

  // The first order without a match counts as half a match, the next one as a quarter, and so on.
  double matches_instead_of_none = 1;
  std::size_t orders = 0;
  double log_sum = 0;
  while (orders < bleu_orders && statistics.total[orders] > 0) {
    auto correct = static_cast<double>(statistics.correct[orders]);
    if (correct == 0) correct = matches_instead_of_none /= 2;
    score.precisions[orders] = 100 * correct / static_cast<double>(statistics.total[orders]);
    log_sum += std::log(score.precisions[orders]);
    ++orders;
  }
  // An order that the whole corpus is too short for has precision 0.
  if (orders < bleu_orders && !options.effective_order) return score;
  score.score = score.brevity_penalty * std::exp(log_sum / static_cast<double>(orders));
  return score;
}

BleuScore corpus_bleu(std::span<const std::string> hypotheses,
                      std::span<const std::vector<std::string>> references,
                      const BleuOptions& options) {
  const Bleu bleu(options);
  BleuScore score = bleu.details(bleu.statistics({hypotheses, references}).sum());
  score.signature = bleu.signature({.references = std::ssize(references)});
  return score;
}

BleuScore sentence_bleu(const std::string& hypothesis, std::span<const std::string> references,
                        BleuOptions options) {
  options.effective_order = true;
  BleuScore score = bleu_score(bleu_statistics(hypothesis, references, options), options);
  score.signature = Bleu(options).signature({.references = std::ssize(references)});
  return score;
}

std::string Bleu::signature(const SignatureContext& context) const {
  return signature_text(
      context,
      fmt::format("case:{}|eff:{}|tok:{}|smooth:exp", options_.lowercase ? "lc" : "mixed",
                  options_.effective_order ? "yes" : "no", name_of(options_.tokenization)));
}

BleuScore Bleu::details(std::span<const std::int64_t> statistics) const {
  return bleu_score(from_row(statistics), options_);
}

double Bleu::score(std::span<const std::int64_t> statistics) const {
  return details(statistics).score;
}

void Bleu::compare(const std::string& hypothesis, std::span<const std::string> references,
                   std::span<std::int64_t> row) const {
  const BleuStatistics statistics = bleu_statistics(hypothesis, references, options_);
  row[0] = statistics.hypothesis_length;
  row[1] = statistics.reference_length;
  std::ranges::copy(statistics.correct, row.begin() + 2);
  std::ranges::copy(statistics.total, row.begin() + 2 + bleu_orders);
}

}  // namespace heed::scoring
