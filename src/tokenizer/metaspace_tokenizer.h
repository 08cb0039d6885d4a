// Byte-pair encoding of characters as SentencePiece has it: LLaMA 2, Mistral. U+2581 stands for the
// space in the vocabulary, and characters without a token are written as bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tokenizer/merger.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// As files have it.
struct MetaspaceDefinition {
  std::vector<std::string> tokens;                          // by id; empty: no token has this id
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added;
  TextNormalisation normalisation;     // its `metaspace` is true
  bool splits_words = false;           // before every space: no token has a space after its first
  bool byte_fallback = false;          // <0x00> to <0xFF> are the tokens of bytes
  std::optional<std::string> unknown;  // for characters without a token, where there are no bytes
  bool fuse_unknown = false;           // several such characters in a row are one unknown token
  bool strips_first_space = false;     // see TokenizerParts
  TextTemplate text_template;
};

class MetaspaceTokenizer : public Tokenizer {
 public:
  // Throws Error{corrupt_data} naming `source` when a token has two ids, the parts or the result of
  // a merge are no tokens, a pair is merged twice, or U+2581 or one of the 256 bytes has no token;
  // Error{unsupported} when characters without a token would disappear.
  MetaspaceTokenizer(MetaspaceDefinition definition, std::string_view source);

  TokenizerKind kind() const override { return TokenizerKind::metaspace; }
  bool may_cut(std::string_view text, std::size_t position) const override;
  std::string to_json() const override;

 protected:
  std::vector<std::int32_t> encode_prepared(const PreparedText& text, StopFlag stop) const override;
  std::size_t token_size(std::string_view text, std::size_t position,
                         std::int32_t id) const override;

 private:
  void read_tokens(std::string_view source);
  void read_merges(std::string_view source);
  std::int32_t find_character(char32_t code_point) const;  // -1: no token
  bool is_boundary(std::string_view text, std::size_t position) const;
  void append_words(std::string_view text, WordCache& cache,
                    std::vector<std::int32_t>& tokens) const;
  void append_word(std::string_view word, std::vector<std::int32_t>& tokens) const;

  MetaspaceDefinition definition_;  // without its merges
  std::vector<MergeRule> merges_;
  std::vector<std::int32_t> character_ids_;  // by code point, where U+2581 is a space; -1: none
  std::array<std::int32_t, 256> byte_ids_{};
  // Characters that stand before a space within some token. After all others a space begins a
  // word: no merge joins the two.
  std::unordered_set<char32_t> before_spaces_;
  std::optional<Merger> merger_;
  mutable WordCachePool caches_;
};

// Whether a document whose model is of type BPE writes spaces as U+2581.
bool is_metaspace_json(const Json& document, std::string_view source);

// Where a step of type Metaspace puts a space, and the name of that. Throws Error{unsupported} for
// another character than U+2581.
PrependScheme read_prepend_scheme(const Json& step, std::string_view source);
std::string_view prepend_scheme_name(PrependScheme scheme);

// `document` is a whole tokenizer.json of which is_metaspace_json() is true.
std::unique_ptr<Tokenizer> read_metaspace_json(const Json& document, std::string_view source);

}  // namespace heed
