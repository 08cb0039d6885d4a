// Which words of a text a model has not read, and the sentence that says so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "tokenizer/reading.h"
#include "tokenizer/tokenizer.h"

namespace heed {

struct UnreadWord {
  std::string text;
  std::size_t begin = 0;  // bytes of the text
  std::size_t end = 0;
  std::int64_t first_token = 0;  // its tokens are [first_token, last_token]
  std::int64_t last_token = 0;
};

struct UnreadWords {
  std::vector<UnreadWord> words;  // in order, every occurrence
  std::int64_t known = 0;         // words that the model has read
  // Of different words: those of the text, and those that were not read.
  std::int64_t different = 0;
  std::vector<std::string> different_unread{};  // in order of their first occurrence
};

// `tokens` say which bytes of the text are whose: ascending. Special tokens are no words.
UnreadWords find_unread(const WordSet& read, std::string_view text,
                        std::span<const TokenSpan> tokens, const Tokenizer& tokenizer);
// The same of a text that is known by the bytes of its tokens.
UnreadWords find_unread(const WordSet& read, std::span<const std::int32_t> ids,
                        std::span<const std::string> pieces, const Tokenizer& tokenizer);

// What becomes of a text with words that were not read.
enum class UnreadFor { prediction, translation };

// "3 of these 7 words (pizza, extra, cheese) are not among the about 1,100 that this model has
// read: its guesses mean little."; empty where every word was read.
std::string unread_note(const UnreadWords& unread, UnreadFor purpose = UnreadFor::prediction);

// {"of", "words": [{"text", "bytes", "tokens"}], "note"}, where ranges are [begin, end); `note` is
// null where every word was read.
OrderedJson unread_json(const UnreadWords& unread, UnreadFor purpose = UnreadFor::prediction);

}  // namespace heed
