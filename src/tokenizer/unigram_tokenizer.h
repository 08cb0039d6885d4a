// Unigram of tokenizer.json (T5, XLM-R, mBART): of all ways to make a word of tokens, the one whose
// log-probabilities have the largest sum.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/vocabulary.h"

namespace heed {

// As files have it; spaces are U+2581.
struct UnigramDefinition {
  std::vector<std::string> tokens;  // by id; empty: no token has this id
  std::vector<double> scores;  // natural logarithms; of the first tokens, others are added ones
  std::vector<AddedToken> added;
  std::int32_t unknown = 0;    // for characters that no tokens cover, those in a row together
  bool byte_fallback = false;  // instead <0x00> to <0xFF>, if they are tokens
  std::shared_ptr<const NormaliserSteps> steps = std::make_shared<NormaliserSteps>();
  bool splits_at_white_space = false;  // which is dropped, before spaces are put
  PrependScheme prepend = PrependScheme::always;
  bool splits_words = true;         // before every U+2581
  bool strips_first_word = true;    // decode() leaves out the spaces of the first token
  bool strips_first_space = false;  // or one space of the whole text
  TextTemplate text_template;
};

// token_bytes() has spaces for U+2581. A text always begins with the space that the tokenizer puts
// first, also with EncodeOptions::continues.
class UnigramTokenizer : public PartTokenizer {
 public:
  // Throws Error{corrupt_data} naming `source` when a token has two ids or a score is not finite.
  UnigramTokenizer(UnigramDefinition definition, std::string_view source);

  TokenizerKind kind() const override { return TokenizerKind::unigram; }
  bool may_cut(std::string_view text, std::size_t position) const override;
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const override;
  std::string to_json() const override;

 protected:
  void append_part(std::string_view part, PartPlace place,
                   std::vector<TokenSpan>& spans) const override;

 private:
  // A word between white space, or a whole part: puts spaces and splits.
  void append_stretch(std::string_view stretch, PartPlace place,
                      std::vector<TokenSpan>& spans) const;
  // With spans in `word`.
  void append_word(std::string_view word, std::vector<TokenSpan>& spans) const;
  void append_unknown(std::string_view text, std::size_t begin,
                      std::vector<TokenSpan>& spans) const;

  UnigramDefinition definition_;
  TokenTrie trie_;
  double unknown_score_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};  // -1: no token
};

// `document` is a whole tokenizer.json whose model is of type Unigram.
std::unique_ptr<Tokenizer> read_unigram_json(const Json& document, std::string_view source);

}  // namespace heed
