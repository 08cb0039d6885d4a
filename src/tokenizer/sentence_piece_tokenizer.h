// SentencePiece models, Unigram and BPE, encoded by the library libsentencepiece.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/part_tokenizer.h"
#include "tokenizer/sentence_piece_model.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

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

// token_bytes() has spaces for U+2581. A text always begins with the space that the model puts
// first, also with EncodeOptions::continues. Added tokens cut the text into parts, each of which
// the model takes for a text.
class SentencePieceTokenizer : public PartTokenizer {
 public:
  // Throws Error{corrupt_data} or Error{unsupported} naming `source`: see
  // read_sentence_piece_model().
  SentencePieceTokenizer(const SentencePieceDefinition& definition, std::string_view source);
  ~SentencePieceTokenizer() override;

  TokenizerKind kind() const override { return TokenizerKind::sentence_piece; }
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const override;
  std::string to_json() const override;
  std::vector<TokenizerFile> files() const override { return files_; }

 protected:
  void append_part(std::string_view part, bool begins_text,
                   std::vector<TokenSpan>& spans) const override;

 private:
  SentencePieceTokenizer(SentencePieceDefinition definition, SentencePieceModel model,
                         std::string_view source);

  std::int32_t id_of(std::uint32_t piece, const std::string& text) const;

  SentencePieceModel model_;
  std::vector<std::string> tokens_;
  std::vector<TokenizerFile> files_;
  bool ids_by_text_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  // of tokens_, where ids are by text
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

// The tokens of a model with its own ids. Control pieces such as </s>, and <unk>, are special.
SentencePieceDefinition plain_definition(std::string_view model, std::string_view file_name,
                                         std::string_view source);

}  // namespace heed
