// The words that people write in a text, whatever its tokens are: what a model has read whole.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

namespace heed {

// Bytes [begin, end) of a text.
struct WrittenWord {
  std::size_t begin = 0;
  std::size_t end = 0;
  // At the beginning of the text, or after a line break, a mark that ends a sentence, or a
  // quotation mark: where words have a capital that they do not have elsewhere.
  bool begins_sentence = false;
};

// Visits the words of a text in order. A word is a run of letters and of the marks that combine
// with them, with apostrophes between letters ("don't"); hyphens separate words. Of scripts without
// spaces between words (Chinese, Japanese, Thai and their like), each character is one. Runs with
// digits ("3rd"), punctuation, symbols, bytes that are not UTF-8 and tags such as <|endoftext|> are
// no words.
void for_each_written_word(std::string_view text,
                           const std::function<void(const WrittenWord&)>& visit);

// Whether the character is of a script that puts no spaces between words.
bool is_unspaced_script(char32_t code_point);

// The end of the character, as people see it (an extended grapheme cluster: a letter with its
// marks, an emoji of several parts), that begins at `position` (< text.size()). A byte that is not
// UTF-8 stands alone.
std::size_t visible_character_end(std::string_view text, std::size_t position);

// The last apostrophe (' or ’) of a word, or npos.
std::size_t find_apostrophe(std::string_view word);

}  // namespace heed
