// GPT-2's byte-level byte-pair encoding.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/merger.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/word_cache.h"

namespace heed {

struct BytePairDefinition {
  std::vector<std::string> tokens;  // the bytes of each token, by id
  std::vector<MergeRule> merges;    // by rank
  std::vector<AddedToken> added;
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
  std::vector<std::int32_t> encode(std::string_view text,
                                   EncodeOptions options = {}) const override;
  std::string to_json() const override;

  const std::vector<MergeRule>& merges() const { return merges_; }

  // A token in byte letters, as vocab.json has it; an added token as it is.
  std::string token_letters(std::int32_t id) const;

 private:
  void append_words(std::string_view text, WordCache& cache,
                    std::vector<std::int32_t>& tokens) const;

  std::vector<MergeRule> merges_;
  Merger merger_;
  mutable WordCachePool caches_;
};

}  // namespace heed
