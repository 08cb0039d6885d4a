// Tokenizers from the text of their files. `source` names the file in errors.
#pragma once

#include <memory>
#include <string_view>

#include "base/tokenizer_config.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// A tokenizer.json in the format of Hugging Face's `tokenizers`:
//   - byte-level BPE of GPT-2, GPT-NeoX, LLaMA 3, Qwen2, Qwen3, GPT-4o and Mistral NeMo
//   - BPE of characters with SentencePiece's spaces, of LLaMA 2 and Mistral
//   - heed's character-level tokenizer
// Padding and truncation, which concern batches, are ignored. `config` is of the same directory:
// see config_tokens.h.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, std::string_view source,
                                                const TokenizerConfig& config = {});

struct VocabularyAndMerges {
  std::string_view vocabulary;  // vocab.json: an object from tokens to ids
  std::string_view merges;      // merges.txt: a pair a line, after a `#version` line or none
  std::string_view vocabulary_source = "vocab.json";
  std::string_view merges_source = "merges.txt";
  TokenizerConfig config = {};
};

// The two files of GPT-2 and of RoBERTa and BART. They do not say which tokens are special: with
// <s> and </s>, which no merge makes, these are, stand around every text, and <pad>, <unk> and
// <mask> are special too; without them <|endoftext|> is, if it is there.
std::unique_ptr<Tokenizer> parse_vocabulary_and_merges(const VocabularyAndMerges& files);

}  // namespace heed
