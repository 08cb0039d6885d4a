// The words of a tokenized text, with the tokens of each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// The text between two spaces, without surrounding punctuation.
struct TextWord {
  std::string text;
  std::int64_t begin = 0;  // its tokens are [begin, end)
  std::int64_t end = 0;

  // The position that has attended to the whole word.
  std::int64_t last() const { return end - 1; }
};

// `tokens` are the bytes of each token of the text, in order.
std::vector<TextWord> words_of(std::span<const std::string> tokens);

// The `occurrence`-th (from 1) occurrence of `word`, or the last one for 0. Ignores case if no word
// matches exactly. Throws Error{not_found} listing the words of the text.
const TextWord& find_word(const std::vector<TextWord>& words, std::string_view word,
                          std::int64_t occurrence = 0);

}  // namespace heed
