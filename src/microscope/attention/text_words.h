// The words of a tokenized text: what people point at, where a model has tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// What stands between two spaces, without the punctuation around it.
struct TextWord {
  std::string text;
  std::int64_t begin = 0;  // its tokens are [begin, end)
  std::int64_t end = 0;

  // The token that has seen the whole word.
  std::int64_t last() const { return end - 1; }
};

// `tokens` are the bytes of each token of the text, in order.
std::vector<TextWord> words_of(std::span<const std::string> tokens);

// The `occurrence`-th (from 1) place where `word` stands, or the last for 0. Upper and lower case
// count only where both are there. Throws Error{not_found} listing the words there are.
const TextWord& find_word(const std::vector<TextWord>& words, std::string_view word,
                          std::int64_t occurrence = 0);

}  // namespace heed
