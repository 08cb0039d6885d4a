// The words of a tokenized text, with the tokens of each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace heed {

// The text between two spaces, without surrounding punctuation; of scripts that put no spaces
// between words (Chinese, Thai), one character.
struct TextWord {
  std::string text;
  std::int64_t begin = 0;  // its tokens are [begin, end)
  std::int64_t end = 0;

  // The position that has attended to the whole word.
  std::int64_t last() const { return end - 1; }
};

// `tokens` are the bytes of each token of the text, in order.
std::vector<TextWord> words_of(std::span<const std::string> tokens);

// The words and, between them, each token that belongs to none (punctuation, the end of a text) as
// a unit of its own: together they cover every token once, in order. A token that ends one word and
// begins the next counts with the first.
std::vector<TextWord> units_of(std::span<const std::string> tokens);

// The unit with the token at `position`.
const TextWord& unit_at(const std::vector<TextWord>& units, std::int64_t position);

// Weights of one query (T), summed over the tokens of each unit: (units).
std::vector<float> by_unit(const std::vector<TextWord>& units, std::span<const float> weights);

// The `occurrence`-th (from 1) occurrence of `word`, or the last one for 0. Ignores case if no word
// matches exactly. Throws Error{not_found} listing the words of the text.
const TextWord& find_word(const std::vector<TextWord>& words, std::string_view word,
                          std::int64_t occurrence = 0);

// Which positions stand for a word of the target.
enum class WordRow {
  read,     // its last token: what the word attends to, once it is read
  written,  // the positions before its tokens, which write them: the mean of their rows
};

// A pattern (queries, keys) by words or units: (query words, key words). Keys of a word are summed,
// so that rows still sum to one (as in Clark et al., What Does BERT Look At?, 2019, who take the
// mean of the rows of a bidirectional model). `row` says which rows stand for a word; words of
// which no position writes a token (the start of the target) have the row that reads them.
Tensor<float> by_words(View<const float> pattern, std::span<const TextWord> queries,
                       std::span<const TextWord> keys, WordRow row);

}  // namespace heed
