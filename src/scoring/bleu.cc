#include "scoring/bleu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "scoring/characters.h"
#include "scoring/metric.h"

namespace heed::scoring {
namespace {

constexpr std::array<std::pair<BleuTokenization, std::string_view>, 5> names{{
    {BleuTokenization::thirteen_a, "13a"},
    {BleuTokenization::none, "none"},
    {BleuTokenization::characters, "char"},
    {BleuTokenization::international, "intl"},
    {BleuTokenization::chinese, "zh"},
}};

enum class Separated { first, second };

// mteval is a list of substitutions of two neighbours, each from the left without overlap: where
// `first` and `second` hold for a pair, one of the two gets spaces on both sides.
template <class First, class Second>
std::u32string separate(const std::u32string& text, Separated which, First first, Second second) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (std::size_t i = 0; i < text.size();) {
    const bool matches = i + 1 < text.size() && first(text[i]) && second(text[i + 1]);
    if (!matches) {
      result += text[i++];
      continue;
    }
    if (which == Separated::first) result += U' ';
    result += text[i];
    result += U' ';
    result += text[i + 1];
    if (which == Separated::second) result += U' ';
    i += 2;
  }
  return result;
}

template <class Matches>
std::u32string surround(const std::u32string& text, Matches matches) {
  std::u32string result;
  result.reserve(text.size() * 2);
  for (const char32_t character : text) {
    if (matches(character)) {
      result += U' ';
      result += character;
      result += U' ';
    } else {
      result += character;
    }
  }
  return result;
}

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (std::size_t i = text.find(from); i != std::u32string::npos;
       i = text.find(from, i + to.size())) {
    text.replace(i, from.size(), to);
  }
}

bool is_ascii_digit(char32_t character) { return character >= U'0' && character <= U'9'; }
bool is_no_ascii_digit(char32_t character) { return !is_ascii_digit(character); }
bool is_period_or_comma(char32_t character) { return character == U'.' || character == U','; }
bool is_hyphen(char32_t character) { return character == U'-'; }

// ASCII punctuation that always stands alone: all but the apostrophe, and period, comma and hyphen,
// which may belong to a number or a word.
bool always_stands_alone(char32_t character) {
  const bool is_ascii_punctuation =
      (character >= U'!' && character <= U'/') || (character >= U':' && character <= U'@') ||
      (character >= U'[' && character <= U'`') || (character >= U'{' && character <= U'~');
  return is_ascii_punctuation && character != U'\'' && !is_hyphen(character) &&
         !is_period_or_comma(character);
}

// What 13a does with the words of Western languages.
std::u32string western_words(const std::u32string& characters) {
  std::u32string text = surround(characters, always_stands_alone);
  text = separate(text, Separated::second, is_no_ascii_digit, is_period_or_comma);
  text = separate(text, Separated::first, is_period_or_comma, is_no_ascii_digit);
  return separate(text, Separated::second, is_ascii_digit, is_hyphen);
}

std::u32string thirteen_a(std::u32string text) {
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
  return western_words(U" " + text + U" ");
}

utf8proc_category_t general_category(char32_t character) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(character));
}

bool is_punctuation(char32_t character) {
  const utf8proc_category_t kind = general_category(character);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_symbol(char32_t character) {
  const utf8proc_category_t kind = general_category(character);
  return kind >= UTF8PROC_CATEGORY_SM && kind <= UTF8PROC_CATEGORY_SO;
}

bool is_no_number(char32_t character) {
  const utf8proc_category_t kind = general_category(character);
  return kind < UTF8PROC_CATEGORY_ND || kind > UTF8PROC_CATEGORY_NO;
}

// First and last characters of what stands alone in Chinese text: ideographs (4E00 to 9FBB,
// extension A, compatibility), radicals, strokes, bopomofo, CJK punctuation, enclosed and squared
// signs, wide and half-width forms. sacreBLEU means extension B (from U+20000 on) to be among them,
// but writes it with four digits, and so has U+2001 to U+2A6D instead: dashes, quotation marks,
// arrows and mathematical signs. Scores are its own, so this is, too; extension B stays together.
constexpr std::array<std::pair<char32_t, char32_t>, 17> chinese_ranges{{{0x2001, 0x2A6D},
                                                                        {0x2E80, 0x2EFF},
                                                                        {0x2F00, 0x2FDF},
                                                                        {0x2FF0, 0x2FFF},
                                                                        {0x3000, 0x303F},
                                                                        {0x3100, 0x312F},
                                                                        {0x31A0, 0x31BF},
                                                                        {0x31C0, 0x31EF},
                                                                        {0x3200, 0x33FF},
                                                                        {0x3400, 0x4DB5},
                                                                        {0x4E00, 0x9FBB},
                                                                        {0xF900, 0xFA2D},
                                                                        {0xFA30, 0xFA6A},
                                                                        {0xFA70, 0xFAD9},
                                                                        {0xFE10, 0xFE1F},
                                                                        {0xFE30, 0xFE4F},
                                                                        {0xFF00, 0xFFEF}}};

bool is_chinese(char32_t character) {
  return std::ranges::any_of(chinese_ranges, [character](const auto& range) {
    return range.first <= character && character <= range.second;
  });
}

// Unlike 13a, without spaces around the text: a period at its end is no word of its own.
std::u32string chinese(const std::u32string& text) {
  const auto begin = std::ranges::find_if_not(text, is_white_space);
  return western_words(surround({begin, text.end()}, is_chinese));
}

// A period that ends a sentence after a number stays with it, as in mteval-v14.
std::u32string international(std::u32string text) {
  text = separate(text, Separated::second, is_no_number, is_punctuation);
  text = separate(text, Separated::first, is_punctuation, is_no_number);
  return surround(text, is_symbol);
}

std::vector<std::u32string> single_characters(const std::u32string& text) {
  std::vector<std::u32string> characters;
  for (const char32_t character : without_space(text)) characters.emplace_back(1, character);
  return characters;
}

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

std::string name_of(BleuTokenization tokenization) {
  const auto found =
      std::ranges::find(names, tokenization, [](const auto& name) { return name.first; });
  return std::string(found->second);
}

std::vector<std::string> bleu_tokenization_names() {
  std::vector<std::string> all;
  for (const auto& name : names) all.emplace_back(name.second);
  return all;
}

BleuTokenization bleu_tokenization_from_name(std::string_view name) {
  const auto found = std::ranges::find(names, name, [](const auto& pair) { return pair.second; });
  if (found == names.end()) {
    fail(ErrorCode::invalid_argument, "there is no tokenization '{}'; expected {}", name,
         fmt::join(bleu_tokenization_names(), ", "));
  }
  return found->first;
}

std::vector<std::u32string> bleu_words(std::u32string_view sentence,
                                       BleuTokenization tokenization) {
  const std::u32string text = without_trailing_space(sentence);
  switch (tokenization) {
    case BleuTokenization::thirteen_a: return split_at_space(thirteen_a(text));
    case BleuTokenization::none: return split_at_space(text);
    case BleuTokenization::characters: return single_characters(text);
    case BleuTokenization::international: return split_at_space(international(text));
    case BleuTokenization::chinese: return split_at_space(chinese(text));
  }
  return {};
}

}  // namespace heed::scoring
