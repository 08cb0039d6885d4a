// Byte-level byte-pair encoding: GPT-2 and its descendants, LLaMA 3, Qwen.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tokenizer/merger.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/words.h"

namespace heed {

struct BytePairDefinition {
  std::vector<std::string> tokens;  // the bytes of each token, by id; empty: no token has the id
  std::vector<MergeRule> merges;    // by rank
  std::vector<AddedToken> added;
  WordPattern pattern = WordPattern::gpt2;
  bool nfc = false;            // texts are normalised (form C)
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  TextTemplate text_template;
};

// The same as files have it: tokens and merges written in byte letters (see byte_letters.h). Added
// tokens stand in `tokens` as they are.
struct BytePairTexts {
  std::vector<std::string> tokens;
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<AddedToken> added;
};

// Throws Error{corrupt_data} naming `source` and the merge whose parts or result are no tokens.
BytePairDefinition read_byte_letters(const BytePairTexts& texts, std::string_view source);

class BytePairTokenizer : public Tokenizer {
 public:
  // Throws Error{corrupt_data} naming `source` unless each of the 256 bytes is a token, every
  // merge joins two tokens into a third, and no pair is merged twice.
  BytePairTokenizer(BytePairDefinition definition, std::string_view source);

  TokenizerKind kind() const override { return TokenizerKind::byte_pair; }
  bool may_cut(std::string_view text, std::size_t position) const override;
  std::string to_json() const override;

  const std::vector<MergeRule>& merges() const { return merges_; }
  WordPattern pattern() const { return pattern_; }
  bool ignores_merges() const { return ignore_merges_; }

  // A token in byte letters, as vocab.json has it; an added token as it is.
  std::string token_letters(std::int32_t id) const;

 protected:
  std::vector<std::int32_t> encode_prepared(const PreparedText& text, StopFlag stop) const override;

 private:
  void append_word(std::string_view word, std::vector<std::int32_t>& tokens) const;
  template <class Words>
  void append_words(std::string_view text, WordCache& cache,
                    std::vector<std::int32_t>& tokens) const;

  using AppendWords = void (BytePairTokenizer::*)(std::string_view, WordCache&,
                                                  std::vector<std::int32_t>&) const;
  static AppendWords append_words_of(WordPattern pattern);

  WordPattern pattern_;
  std::vector<MergeRule> merges_;
  Merger merger_;
  bool ignore_merges_;
  std::unordered_map<std::string_view, std::int32_t> whole_words_;  // only with ignore_merges_
  mutable WordCachePool caches_;
};

// GPT-2's letters for bytes: each of the 256 bytes is written as one printable character, so that
// any token can stand in a JSON file. Printable Latin-1 characters stand for themselves; the other
// 68 bytes take U+0100, U+0101, ... in ascending order (a space is written U+0120).
//
// The character that stands for each byte.
const std::array<char32_t, 256>& byte_letters();

// The 256 bytes in ascending order of their letters: the order of GPT-2's first 256 ids.
const std::array<unsigned char, 256>& bytes_by_letter();

// Bytes written in byte letters (UTF-8).
std::string bytes_to_letters(std::string_view bytes);

// The bytes that byte letters stand for; nothing when a character is not a byte letter.
std::optional<std::string> letters_to_bytes(std::string_view letters);

// `document` is a whole tokenizer.json whose model is of type BPE.
std::unique_ptr<Tokenizer> read_byte_pair_json(const Json& document, std::string_view source);

}  // namespace heed
