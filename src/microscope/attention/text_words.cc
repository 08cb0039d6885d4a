#include "microscope/attention/text_words.h"

#include <algorithm>

#include "base/error.h"

namespace heed {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

bool is_ascii_punctuation(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 33 && byte <= 47) || (byte >= 58 && byte <= 64) || (byte >= 91 && byte <= 96) ||
         (byte >= 123 && byte <= 126);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

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
    while (end < text.size() && !is_space(text[end])) ++end;
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

const TextWord& find_word(const std::vector<TextWord>& words, std::string_view word,
                          std::int64_t occurrence) {
  std::vector<const TextWord*> occurrences;
  for (const TextWord& candidate : words) {
    if (candidate.text == word) occurrences.push_back(&candidate);
  }
  if (occurrences.empty()) {
    for (const TextWord& candidate : words) {
      if (lower_case(candidate.text) == lower_case(word)) occurrences.push_back(&candidate);
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

}  // namespace heed
