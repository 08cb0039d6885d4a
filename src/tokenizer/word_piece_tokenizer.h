// WordPiece, of BERT: words are cut at white space and punctuation, and each is covered from left
// to right by the longest tokens there are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/tokenizer_config.h"
#include "tokenizer/normalisation.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// As files have it.
struct WordPieceDefinition {
  std::vector<std::string> tokens;  // by id; empty: no token has this id
  std::vector<AddedToken> added;
  std::string unknown = "[UNK]";             // for words that no tokens cover
  std::string continuation = "##";           // begins tokens that continue a word; not empty
  std::int64_t max_characters_a_word = 100;  // longer words are unknown
  std::optional<BertNormalisation> normalisation = BertNormalisation{};
  bool cleans_up = true;  // decode() takes back the spaces before punctuation
  TextTemplate text_template;
};

// token_bytes() of a token that begins a word has a space first, those of one that continues it
// have not. Texts are not given back exactly: white space, case and accents are lost.
class WordPieceTokenizer : public PartTokenizer {
 public:
  // Throws Error{corrupt_data} naming `source` when a token has two ids, or the unknown one none.
  WordPieceTokenizer(WordPieceDefinition definition, std::string_view source);

  TokenizerKind kind() const override { return TokenizerKind::word_piece; }
  bool may_cut(std::string_view text, std::size_t position) const override;
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const override;
  std::string to_json() const override;

 protected:
  void append_part(std::string_view part, PartPlace place,
                   std::vector<TokenSpan>& spans) const override;

 private:
  void append_word(std::string_view part, std::size_t begin, std::size_t end,
                   std::vector<TokenSpan>& spans) const;

  WordPieceDefinition definition_;
  TokenTrie beginnings_;     // of words: every token as it is
  TokenTrie continuations_;  // without their prefix
};

// `document` is a whole tokenizer.json whose model is of type WordPiece.
std::unique_ptr<Tokenizer> read_word_piece_json(const Json& document, std::string_view source);

// A token a line, whose number, from 0 on, is its id. [PAD], [UNK], [CLS], [SEP] and [MASK] are
// special, as well as what `config` says (see tokenizer_files.h), of which do_lower_case [true],
// strip_accents [as do_lower_case] and tokenize_chinese_chars [true] count too.
std::unique_ptr<Tokenizer> read_word_piece_lines(std::string_view text,
                                                 const TokenizerConfig& config,
                                                 std::string_view source);

}  // namespace heed
