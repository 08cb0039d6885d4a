// Text to token ids and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "tokenizer/added_token_matcher.h"
#include "tokenizer/vocabulary.h"

namespace heed {

inline constexpr const char* tokenizer_file_name = "tokenizer.json";

struct EncodeOptions {
  bool special_tokens = true;  // strings such as <|endoftext|> become their ids; else plain text
  StopFlag stop = nullptr;  // byte pairs of a long text: throws Error{interrupted} once it is set
};

// A token and the bytes of the text that it stands for, [begin, end).
struct TokenSpan {
  std::int32_t id = 0;
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const TokenSpan&, const TokenSpan&) = default;
};

enum class TokenizerKind { byte_pair, character };

// "byte_pair" or "character".
const char* tokenizer_kind_name(TokenizerKind kind);

// Immutable once made; every method may be called from several threads at once. Tokens are byte
// strings: the bytes of a text's tokens, one after the other, are the text.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  virtual TokenizerKind kind() const = 0;

  // Large texts are encoded by all threads, with the same result.
  virtual std::vector<std::int32_t> encode(std::string_view text,
                                           EncodeOptions options = {}) const = 0;
  std::vector<TokenSpan> encode_with_offsets(std::string_view text,
                                             EncodeOptions options = {}) const;

  // The bytes of the tokens, which need not be whole characters. Throws Error{invalid_argument}
  // for an id outside the vocabulary, as token_bytes and token_text do.
  std::string decode(std::span<const std::int32_t> ids) const;
  std::string token_bytes(std::int32_t id) const;
  std::string token_text(std::int32_t id) const;  // for people: see printable() in utf8.h

  std::int32_t vocabulary_size() const { return vocabulary_.size(); }
  const std::vector<AddedToken>& added_tokens() const { return vocabulary_.added(); }
  std::optional<std::int32_t> end_of_text() const { return end_of_text_; }

  // The text of a tokenizer.json, in the format of Hugging Face's `tokenizers`.
  virtual std::string to_json() const = 0;

  // Writes `directory`/tokenizer.json, whole or not at all.
  void save(const std::filesystem::path& directory) const;

  // Names what this tokenizer is, such as "byte_pair-50257-0123456789abcdef": equal for tokenizers
  // that encode alike, made from all tokens and merges. For naming cached token files.
  std::string content_key() const;

 protected:
  explicit Tokenizer(Vocabulary vocabulary);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::vector<AddedTokenMatch> find_added(std::string_view text, EncodeOptions options) const;

 private:
  Vocabulary vocabulary_;
  AddedTokenMatcher all_added_;
  AddedTokenMatcher plain_added_;  // those that are not special
  std::optional<std::int32_t> end_of_text_;
};

// Loads a tokenizer.json, or the directory that holds tokenizer.json or vocab.json and merges.txt
// (in this order). Throws Error{not_found}, Error{corrupt_data} or, when the file asks
// for something that would tokenize differently here, Error{unsupported}.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace heed
