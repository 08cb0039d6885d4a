// One token for each character, as nanoGPT's shakespeare_char has it: the vocabulary is the sorted
// set of the characters (code points) of the training text.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace heed {

class CharacterTokenizer : public Tokenizer {
 public:
  // `tokens[id]` is one character, or the content of an added token. Throws Error{corrupt_data}
  // naming `source` for any other token and for a character with two ids.
  CharacterTokenizer(const std::vector<std::string>& tokens, std::vector<AddedToken> added,
                     std::string_view source);

  TokenizerKind kind() const override { return TokenizerKind::character; }

  std::string to_json() const override;

  // Whether the character has a token of its own.
  bool knows(char32_t character) const { return ids_.contains(character); }

 protected:
  // Throws Error{invalid_argument} naming the first character that is not in the vocabulary, and
  // its byte offset.
  std::vector<std::int32_t> encode_prepared(const PreparedText& prepared,
                                            StopFlag stop) const override;

 private:
  std::unordered_map<char32_t, std::int32_t> ids_;
  std::array<std::int32_t, 128> ascii_ids_;  // the same below U+0080; -1 where there is none
};

struct CharacterTrainingOptions {
  std::vector<std::string> special_tokens;  // their ids follow the characters'; they are cut from
                                            // the texts before characters are counted
};

// Throws Error{invalid_argument} when there is no character at all, and Error{corrupt_data} with
// the byte offset where a text is not UTF-8.
std::unique_ptr<CharacterTokenizer> train_character_tokenizer(
    std::span<const std::string_view> texts, const CharacterTrainingOptions& options = {});

// The character-level tokenizer in tokenizer.json: a WordLevel model over single characters, which
// Hugging Face's `tokenizers` reads with the same results, including errors for unknown characters.
// `document` is a whole tokenizer.json whose model is of type WordLevel.
std::unique_ptr<Tokenizer> read_character_json(const Json& document, std::string_view source);

}  // namespace heed
