// Text files as one long sequence of tokens: encoded once into memory-mapped shards, cached under a
// name made of their content and the tokenizer's; in memory where there is no cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/progress.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// A long sequence of tokens, in memory or in files.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual std::int64_t size() const = 0;
  // Tokens [begin, begin + out.size()), which must be in range.
  virtual void read(std::int64_t begin, std::span<std::int32_t> out) const = 0;
};

// In memory.
class TokenList : public TokenSequence {
 public:
  explicit TokenList(std::vector<std::int32_t> tokens) : tokens_(std::move(tokens)) {}

  std::int64_t size() const override { return std::ssize(tokens_); }
  void read(std::int64_t begin, std::span<std::int32_t> out) const override {
    std::copy_n(tokens_.begin() + begin, out.size(), out.begin());
  }

 private:
  std::vector<std::int32_t> tokens_;
};

// Tokens on disk, in llm.c's format: 256 little-endian int32 (magic 20240520, version, count), then
// the tokens as u16 (version 1) or, for larger vocabularies, u32 (version 7).
//
// Writes one file atomically.
void write_token_file(const std::filesystem::path& path, std::span<const std::int32_t> tokens,
                      std::int64_t vocabulary_size);

// A mapped file of tokens.
class TokenFile final : public TokenSequence {
 public:
  // Throws Error{corrupt_data} for a wrong magic, version or length.
  explicit TokenFile(const std::filesystem::path& path);

  std::int64_t size() const override { return size_; }
  // Tokens [begin, begin + out.size()).
  void read(std::int64_t begin, std::span<std::int32_t> out) const override;

 private:
  MappedFile file_;
  std::int64_t size_ = 0;
  bool wide_ = false;  // u32
};

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

// TextViews in their order. Borrowed: mapped files or strings that outlive the call.
using TextViews = std::vector<std::string_view>;

struct TokenizeOptions {
  std::filesystem::path cache;  // directory of the shards; empty: none, as default_token_cache()
  ProgressCallback progress;    // bytes of text
  StopFlag stop = nullptr;
  // Receives a sentence when tokens stay in memory because the cache cannot be written.
  std::function<void(const std::string&)> notice;
};

// The texts' tokens, from the cache if present. TextViews are separated by the tokenizer's
// end-of-text token, if it has one; <|endoftext|> inside a text means that token too. Throws
// Error{interrupted} when stopped.
TokenData tokenize_texts(const Tokenizer& tokenizer, const TextViews& texts,
                         const TokenizeOptions& options);

// The tokens of lines, each after those that the tokenizer's template puts before a text and
// followed by its end of text, which no line holds otherwise: strings such as </s> in a line are
// plain text. Throws Error{invalid_argument} for a tokenizer
// without an end of text, and Error{interrupted} when stopped.
TokenData tokenize_lines(const Tokenizer& tokenizer, const TextViews& lines,
                         const TokenizeOptions& options);

// $HEED_CACHE/tokens, else $XDG_CACHE_HOME/heed/tokens, else $HOME/.cache/heed/tokens; empty if
// none is set. Values of the last two that are not absolute paths are ignored, as the XDG
// specification asks.
std::filesystem::path default_token_cache();

// Splits the concatenated texts before the last `fraction` of their bytes: at the end of a document
// where documents are marked, else between two characters.
struct SplitTexts {
  TextViews training;
  TextViews validation;
};
SplitTexts split_texts(const TextViews& texts, double fraction);

// The beginning of each document, at the end-of-text token that ends the previous one so that its
// first token is predicted too, and every sequence_length tokens within it, so that long documents
// are covered. Each start is followed by at least one target. At least one start, given two tokens.
std::vector<std::int64_t> document_starts(const TokenSequence& tokens, std::int32_t end_of_text,
                                          std::int64_t sequence_length);

}  // namespace heed
