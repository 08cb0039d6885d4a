// The bytes of every token, and which tokens were added to the vocabulary as whole strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

// The end of a document, in GPT-2 and its descendants.
inline constexpr std::string_view end_of_text_name = "<|endoftext|>";

// A token that is matched in the text as a whole string, before pre-tokenization.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = true;       // a control token, which EncodeOptions can treat as plain text
  bool normalized = false;   // looked for, itself normalised, in the normalised text
  bool strip_left = false;   // takes the white space before it along
  bool strip_right = false;  // and the white space behind it
  bool single_word = false;  // is none inside a longer word
};

// Throws Error{unsupported} for a token longer than longest_sought_token (token_trie.h).
void require_sought_size(std::string_view token, std::int64_t id, std::string_view source);

class Vocabulary {
 public:
  // `tokens[id]` are the bytes of token `id`, empty where no token has this id. Throws
  // Error{unsupported} for an added token that is too long, and Error{corrupt_data} when an added
  // token is empty, not UTF-8, listed twice, or not the token of its id, whose bytes may have
  // spaces where the added token has U+2581.
  Vocabulary(const std::vector<std::string>& tokens, std::vector<AddedToken> added,
             std::string_view source);

  // One more than the highest id; some ids below may have no token.
  std::int32_t size() const { return static_cast<std::int32_t>(begins_.size()) - 1; }

  // Empty for an id without a token. Throws Error{invalid_argument} for an id outside [0, size()).
  std::string_view bytes(std::int32_t id) const;

  const std::vector<AddedToken>& added() const { return added_; }  // by ascending id
  const AddedToken* find_added(std::int32_t id) const;             // null when `id` is none
  const AddedToken* find_added(std::string_view content) const;

 private:
  std::string bytes_;                // all tokens, one after the other
  std::vector<std::size_t> begins_;  // token i is [begins_[i], begins_[i + 1]) of bytes_
  std::vector<AddedToken> added_;
};

}  // namespace heed
