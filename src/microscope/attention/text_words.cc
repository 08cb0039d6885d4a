#include "microscope/attention/text_words.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/written_words.h"

namespace heed {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string list_of(const std::vector<TextWord>& words) {
  constexpr std::size_t most = 40;
  std::vector<std::string_view> listed;
  for (const TextWord& word : words) {
    if (std::ranges::find(listed, word.text) == listed.end()) listed.push_back(word.text);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(listed.size(), most); ++i) {
    if (i > 0) text += ", ";
    text += listed[i];
  }
  return listed.size() > most ? text + ", …" : text;
}

}  // namespace

std::vector<TextWord> words_of(std::span<const std::string> tokens) {
  std::string text;
  std::vector<std::int64_t> token_of;  // of each byte
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    text += tokens[i];
    token_of.resize(text.size(), static_cast<std::int64_t>(i));
  }
  std::vector<TextWord> words;
  for (std::size_t begin = 0; begin < text.size();) {
    if (is_space(text[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < text.size() && !is_space(text[end])) {
      // Of scripts that put no spaces between words, a character is a unit.
      const bool is_whole = is_unspaced_script(read_utf8(text, end).code_point);
      if (is_whole && end > begin) break;
      end = visible_character_end(text, end);
      if (is_whole) break;
    }
    std::size_t first = begin;
    std::size_t last = end;
    while (first < end && is_ascii_punctuation(text[first])) ++first;
    while (last > first && is_ascii_punctuation(text[last - 1])) --last;
    if (first == end) {  // only punctuation: it is the word
      first = begin;
      last = end;
    }
    words.push_back({text.substr(first, last - first), token_of[first], token_of[last - 1] + 1});
    begin = end;
  }
  return words;
}

std::vector<TextWord> units_of(std::span<const std::string> tokens) {
  std::vector<TextWord> units;
  std::int64_t covered = 0;
  const auto cover_singly = [&](std::int64_t end) {
    for (; covered < end; ++covered) {
      units.push_back({tokens[static_cast<std::size_t>(covered)], covered, covered + 1});
    }
  };
  for (TextWord& word : words_of(tokens)) {
    cover_singly(word.begin);
    if (word.end <= covered) continue;
    word.begin = covered;
    covered = word.end;
    units.push_back(std::move(word));
  }
  cover_singly(std::ssize(tokens));
  return units;
}

const TextWord& unit_at(const std::vector<TextWord>& units, std::int64_t position) {
  const auto after = std::ranges::upper_bound(units, position, {}, &TextWord::begin);
  check(after != units.begin() && position < units.back().end, "units cover every position");
  return *std::prev(after);
}

std::vector<float> by_unit(const std::vector<TextWord>& units, std::span<const float> weights) {
  std::vector<float> sums;
  for (const TextWord& unit : units) {
    double sum = 0;
    for (std::int64_t s = unit.begin; s < unit.end; ++s) {
      sum += weights[static_cast<std::size_t>(s)];
    }
    sums.push_back(static_cast<float>(sum));
  }
  return sums;
}

const TextWord& find_word(const std::vector<TextWord>& words, std::string_view word,
                          std::int64_t occurrence) {
  std::vector<const TextWord*> occurrences;
  for (const TextWord& candidate : words) {
    if (candidate.text == word) occurrences.push_back(&candidate);
  }
  if (occurrences.empty()) {
    for (const TextWord& candidate : words) {
      if (ascii_lower(candidate.text) == ascii_lower(word)) occurrences.push_back(&candidate);
    }
  }
  require(!occurrences.empty(), ErrorCode::not_found,
          "the text has no word '{}'; its words are: {}", word, list_of(words));
  if (occurrence == 0) return *occurrences.back();
  require(occurrence >= 1 && occurrence <= static_cast<std::int64_t>(occurrences.size()),
          ErrorCode::not_found, "'{}' occurs {} time{} in the text; occurrence {} does not exist",
          word, occurrences.size(), occurrences.size() == 1 ? "" : "s", occurrence);
  return *occurrences[occurrence - 1];
}

namespace {

// Adds a row of weights, summed over the tokens of each word, times `share`.
void add_by_words(std::span<const float> weights, std::span<const TextWord> words, double share,
                  std::span<float> out) {
  for (std::size_t word = 0; word < words.size(); ++word) {
    double sum = 0;
    for (std::int64_t s = words[word].begin; s < words[word].end; ++s) {
      sum += weights[static_cast<std::size_t>(s)];
    }
    out[word] += static_cast<float>(share * sum);
  }
}

}  // namespace

Tensor<float> by_words(View<const float> pattern, std::span<const TextWord> queries,
                       std::span<const TextWord> keys, WordRow row) {
  Tensor<float> words(Shape{std::ssize(queries), std::ssize(keys)});
  for (std::size_t word = 0; word < queries.size(); ++word) {
    std::int64_t begin = queries[word].last(), end = queries[word].end;
    if (row == WordRow::written && queries[word].begin > 0) {
      begin = queries[word].begin - 1;
      end = queries[word].end - 1;
    }
    const std::span<float> out = words.view()[static_cast<std::int64_t>(word)].span();
    for (std::int64_t t = begin; t < end; ++t) {
      add_by_words(pattern[t].span(), keys, 1.0 / static_cast<double>(end - begin), out);
    }
  }
  return words;
}

}  // namespace heed
