// Text files as one long sequence of tokens: encoded once into memory-mapped shards, cached under a
// name made of their content and the tokenizer's; in memory where there is no cache.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "tokenizer/tokenizer.h"
#include "train/token_file.h"
#include "train/token_sequence.h"

namespace heed {

class TokenData : public TokenSequence {
 public:
  using Shards = std::vector<std::unique_ptr<TokenSequence>>;
  TokenData(Shards shards, std::string key);

  std::int64_t size() const override { return starts_.back(); }
  // Names these tokens: made from the texts' content and the tokenizer's.
  const std::string& key() const { return key_; }
  // Tokens [begin, begin + out.size()), across shards.
  void read(std::int64_t begin, std::span<std::int32_t> out) const override;

 private:
  std::string key_;
  Shards shards_;
  std::vector<std::int64_t> starts_;  // first token of each shard, and the end
};

// Texts in their order. Borrowed: mapped files or strings that outlive the call.
using Texts = std::vector<std::string_view>;

struct TokenizeOptions {
  std::filesystem::path cache;  // directory of the shards; empty: none, as default_token_cache()
  ProgressCallback progress;    // bytes of text
  StopFlag stop = nullptr;
  // Receives a sentence when tokens stay in memory because the cache cannot be written.
  std::function<void(const std::string&)> notice;
};

// The texts' tokens, from the cache if present. Texts are separated by the tokenizer's end-of-text
// token, if it has one; <|endoftext|> inside a text means that token too. Throws Error{interrupted}
// when stopped.
TokenData tokenize_texts(const Tokenizer& tokenizer, const Texts& texts,
                         const TokenizeOptions& options);

// The tokens of lines, each behind those that the tokenizer's template puts before a text and
// followed by its end of text, which no line holds otherwise: strings such as </s> in a line are
// plain text. Throws Error{invalid_argument} for a tokenizer
// without an end of text, and Error{interrupted} when stopped.
TokenData tokenize_lines(const Tokenizer& tokenizer, const Texts& lines,
                         const TokenizeOptions& options);

// $HEED_CACHE/tokens, else $XDG_CACHE_HOME/heed/tokens, else $HOME/.cache/heed/tokens; empty if
// none is set. Values of the last two that are not absolute paths are ignored, as the XDG
// specification asks.
std::filesystem::path default_token_cache();

// Splits the concatenated texts before the last `fraction` of their bytes: at the end of a document
// where documents are marked, else between two characters.
struct SplitTexts {
  Texts training;
  Texts validation;
};
SplitTexts split_texts(const Texts& texts, double fraction);

}  // namespace heed
