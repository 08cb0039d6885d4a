// Tokenizers from the text of their files. `source` names the file in errors.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace heed {

// A tokenizer.json in the format of Hugging Face's `tokenizers`: byte-level BPE as GPT-2 has it, or
// heed's character-level tokenizer. Padding and truncation, which concern batches, are ignored.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view source);

struct VocabularyAndMerges {
  std::string_view vocabulary;  // vocab.json: an object from tokens to ids
  std::string_view merges;      // merges.txt: a pair a line, after a `#version` line or none
  std::string_view vocabulary_source = "vocab.json";
  std::string_view merges_source = "merges.txt";
};

// GPT-2's two files. They do not say which tokens are special: <|endoftext|> is, if it is there.
std::unique_ptr<Tokenizer> parse_vocabulary_and_merges(const VocabularyAndMerges& files);

}  // namespace heed
