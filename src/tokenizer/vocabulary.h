// The bytes of every token, and which tokens were added to the vocabulary as whole strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  bool strip_right = false;  // and the white space after it
  bool single_word = false;  // is none inside a longer word

  bool operator==(const AddedToken&) const = default;
};

// Throws Error{unsupported} for a token longer than max_sought_token (token_trie.h).
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

// Tokens that are looked for at every position of a text are at most this long, in bytes, so that
// the time that a text takes depends on its own length. Those of published files have at most a few
// hundred.
inline constexpr std::size_t max_sought_token = 1024;

// A trie of the bytes of tokens: finds all tokens that a text begins with.
class TokenTrie {
 public:
  TokenTrie() : nodes_(1) {}

  // Texts, not empty and each only once, and their ids. Bytes that no two tokens part at are one
  // node, so that there are at most two nodes a token.
  explicit TokenTrie(std::vector<std::pair<std::string_view, std::int32_t>> tokens);

  // Calls visit(id, size) for every token that `text` begins with, the shorter ones first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    std::size_t node = 0;
    for (std::size_t size = 0; size < text.size();) {
      node = child(node, static_cast<unsigned char>(text[size]));
      if (node == 0) return;
      const Node& next = nodes_[node];
      if (next.size > 1 && text.substr(size, next.size) != label(next)) return;
      size += next.size;
      if (next.id >= 0) visit(next.id, size);
    }
  }

  struct Match {
    std::int32_t id = -1;  // -1: none
    std::size_t size = 0;
  };
  Match longest_prefix(std::string_view text) const {
    Match longest;
    for_each_prefix(text, [&](std::int32_t id, std::size_t size) { longest = {id, size}; });
    return longest;
  }

  std::size_t node_count() const { return nodes_.size(); }

 private:
  // Reached by the bytes labels_[label] to labels_[label + size - 1].
  struct Node {
    std::int32_t id = -1;
    std::uint32_t first_child = 0;  // children are adjacent, by ascending first byte
    std::uint32_t label = 0;
    std::uint32_t size = 0;
    std::uint16_t children = 0;
    unsigned char byte = 0;  // the first of the label
  };

  // 0, the root, when there is none.
  std::size_t child(std::size_t node, unsigned char byte) const;
  std::string_view label(const Node& node) const {
    return std::string_view(labels_).substr(node.label, node.size);
  }

  std::vector<Node> nodes_;
  std::string labels_;
};

// It stands for the space in vocabularies of SentencePiece.
inline constexpr std::string_view metaspace_character = "\u2581";

// Replaces each space by U+2581, and back.
std::string with_metaspaces(std::string_view text);
std::string with_spaces(std::string_view text);

// <0x00> to <0xFF>, the tokens of bytes.
std::string byte_token_text(int byte);

struct MetaspaceVocabulary {
  std::span<const std::string> tokens;
  std::span<const AddedToken> added;
  bool byte_fallback = false;  // tokens <0x00> to <0xFF> that are no added ones are bytes
};

// What tokens stand for: bytes, or texts with spaces, also those of added tokens, such as Gemma's
// runs of U+2581.
std::vector<std::string> metaspace_token_bytes(const MetaspaceVocabulary& vocabulary);

}  // namespace heed
