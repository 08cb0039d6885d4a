// SentencePiece models, Unigram and BPE, as tokenizers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/piecewise.h"
#include "tokenizer/sentence_piece_model.h"
#include "tokenizer/tokenizer.h"

namespace heed {

// As files have it.
struct SentencePieceDefinition {
  std::string_view model;           // the bytes of the model's file
  std::vector<std::string> tokens;  // by id; empty: no token has this id
  // Tokens are found by the text of pieces (Marian's vocab.json); else ids are those of the pieces,
  // which come first in `tokens`.
  bool ids_by_text = false;
  std::string unknown = "<unk>";  // the token of pieces that are none
  std::vector<AddedToken> added;
  TextTemplate text_template;
  std::vector<TokenizerFile> files;  // what load_tokenizer() needs, the model among them
};

// token_bytes() has spaces for U+2581. A text begins with the space that the model puts first, also
// with EncodeOptions::continues if the model takes spaces at the ends away. Added tokens cut the
// text into parts, each of which the model takes for a text.
class SentencePieceTokenizer : public PartTokenizer {
 public:
  // Throws Error{corrupt_data} or Error{unsupported} naming `source`: see
  // read_sentence_piece_model().
  SentencePieceTokenizer(const SentencePieceDefinition& definition, std::string_view source);

  TokenizerKind kind() const override { return TokenizerKind::sentence_piece; }
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const override;
  std::string to_json() const override;
  std::vector<TokenizerFile> files() const override { return files_; }

  const SentencePieceModel& model() const { return encoder_.model(); }
  const std::vector<std::string>& tokens() const { return tokens_; }  // by id; empty: none
  bool finds_ids_by_text() const { return ids_by_text_; }

 protected:
  void append_part(std::string_view part, PartPlace place,
                   std::vector<TokenSpan>& spans) const override;

 private:
  SentencePieceTokenizer(SentencePieceDefinition definition, SentencePieceModel model,
                         std::string_view source);

  std::int32_t id_of(const SentencePieceEncoder::Token& token) const;

  SentencePieceEncoder encoder_;
  std::vector<std::string> tokens_;
  std::vector<TokenizerFile> files_;
  bool ids_by_text_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // of tokens_, where ids are by text
};

// The tokens of a model with its own ids. Control pieces such as </s>, and <unk>, are special.
SentencePieceDefinition plain_definition(std::string_view model, std::string_view file_name,
                                         std::string_view source);

// Tokenizers of published models that come with SentencePiece models: T5, LLaMA and Marian.

// A model alone (.model, .spm): its own ids, and nothing around a text.
std::unique_ptr<Tokenizer> load_sentence_piece_file(const std::filesystem::path& path);

// T5's spiece.model, with tokenizer_config.json and special_tokens_map.json if they are there: </s>
// after a text, and the tokens <extra_id_0>, <extra_id_1>, ... after those of the model.
std::unique_ptr<Tokenizer> load_t5(const std::filesystem::path& directory);

// LLaMA 2's and Mistral's tokenizer.model, with tokenizer_config.json and the files beside it if
// they are there: <s> before a text, unless these say otherwise. Texts are divided as
// SentencePiece's library does it.
inline constexpr const char* llama_pieces_name = "tokenizer.model";
std::unique_ptr<Tokenizer> load_llama(const std::filesystem::path& directory);

// OPUS-MT's source.spm, target.spm, vocab.json and, where languages have vocabularies of their own,
// target_vocab.json: </s> after a text; tokens >>language<< are found as a whole.
struct MarianTokenizers {
  std::unique_ptr<Tokenizer> source;
  std::unique_ptr<Tokenizer> target;
};
MarianTokenizers load_marian(const std::filesystem::path& directory);

}  // namespace heed
