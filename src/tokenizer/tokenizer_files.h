// Tokenizers from the text of their files. `source` names the file in errors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/tokenizer_config.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// A tokenizer.json in the format of Hugging Face's `tokenizers`:
//   - byte-level BPE of GPT-2, GPT-NeoX, LLaMA 3, Qwen2, Qwen3, GPT-4o and Mistral NeMo
//   - BPE of characters with SentencePiece's spaces, of LLaMA 2 and Mistral
//   - heed's character-level tokenizer
// Padding and truncation, which concern batches, are ignored. `config` is of the same directory:
// see find_among().
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

// What tokenizer_config.json, and the older files beside it, change about the tokens that a
// tokenizer's own files have.

// The id of a token of the vocabulary by its text.
using FindToken = std::function<std::optional<std::int32_t>(const std::string& text)>;

// Among `tokens`, by id, which must outlive it and stay as they are.
FindToken find_among(const std::vector<std::string>& tokens);

// Added tokens as the configuration has them, as transformers does:
//   - A token of added_tokens_decoder replaces what was known of the token with its text, which
//     keeps its id; one that is in neither list comes with its own id.
//   - Without added_tokens_decoder, tokens of added_tokens.json come with their ids, if they are
//   new.
//   - A token of a role (eos_token, ...) or of additional_special_tokens that is in the vocabulary
//   is
//     a special token.
// Throws Error{corrupt_data} for what is not as it should be.
std::vector<AddedToken> with_config_tokens(std::vector<AddedToken> added,
                                           const TokenizerConfig& config, const FindToken& find);

// add_bos_token and add_eos_token: the token stands around texts, or does not. `find` finds added
// tokens too. Throws Error{corrupt_data} where a token is to be added that is none.
TextTemplate with_config_template(TextTemplate around, const TokenizerConfig& config,
                                  const FindToken& find);

// Both, in a whole tokenizer.json.
void apply_tokenizer_config(Json& document, const TokenizerConfig& config, std::string_view source);

}  // namespace heed
