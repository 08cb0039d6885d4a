// Tokenizers without a model.
//
//   heed::TextTokenizer tokenizer = heed::TextTokenizer::load("starter");
//   heed::TextTokenizer own = heed::TextTokenizer::learn(texts, 4096);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/error.h"

namespace heed {

class Tokenizer;

// Immutable; copies share it. Several threads may use it at once.
class TextTokenizer {
 public:
  // Of a model, by the names that Model::load() takes, and "translator"; or a tokenizer.json or
  // SentencePiece file.
  static TextTokenizer load(const std::string& name_or_path);
  // Learns a byte-level byte-pair tokenizer of at most so many tokens, <|endoftext|> included.
  // Throws Error{invalid_argument} for fewer than 257 and for texts that are all empty,
  // Error{interrupted} once `stop` is set.
  static TextTokenizer learn(std::span<const std::string> texts, std::int32_t vocabulary_size,
                             const std::atomic<bool>* stop = nullptr);

  std::string kind() const;  // "byte_pair", "unigram", …
  std::int32_t vocabulary_size() const;
  // Special tokens such as <|endoftext|> are recognised.
  std::vector<std::int32_t> encode(std::string_view text) const;
  // Both throw Error{invalid_argument} for an id outside the vocabulary.
  std::string decode(std::span<const std::int32_t> tokens) const;
  std::vector<std::string> token_texts(std::span<const std::int32_t> tokens) const;

  // Writes the files that load() reads to a directory, which must exist.
  void save(const std::string& directory) const;

 private:
  explicit TextTokenizer(std::shared_ptr<const Tokenizer> tokenizer);
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace heed
