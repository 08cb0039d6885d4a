// SentencePiece's models in GGUF files, Unigram as T5 has it in spiece.model and BPE as LLaMA has
// it in tokenizer.model: under the keys of the kinds t5 and llama, and one of heed's own for what
// these do not say.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/gguf_writer.h"
#include "formats/gguf_fields.h"
#include "tokenizer/sentence_piece_tokenizer.h"

namespace heed {

// A JSON document. Where it is there, texts are divided as SentencePiece's library does it.
inline constexpr const char* gguf_sentence_pieces_key = "heed.sentence_pieces";

struct GgufSentencePieces {
  PieceSearch search = PieceSearch::unigram;
  std::size_t pieces = 0;  // the first tokens are those of the model
  std::vector<AddedToken> added;
};

// Nothing where the key is absent. Throws Error{corrupt_data} naming it.
std::optional<GgufSentencePieces> find_gguf_sentence_pieces(const GgufFields& fields);

// The file of such a model in a directory.
const char* sentence_pieces_file(PieceSearch search);

// What a tokenizer_config.json says of such a tokenizer, beside the model's file.
void describe_sentence_pieces(const GgufSentencePieces& found, const GgufFields& fields,
                              Json& config);

// Why no kind describes the model; empty: one does.
std::string why_no_gguf_sentence_pieces(const SentencePieceTokenizer& tokenizer);

// Appends the keys, with as many tokens as the embedding has rows, of a model that a kind
// describes.
void add_sentence_pieces(const SentencePieceTokenizer& tokenizer, std::int64_t rows,
                         GgufMetadata& metadata);

// Whether both divide all texts alike, and have the same special tokens.
bool are_same(const SentencePieceTokenizer& left, const SentencePieceTokenizer& right);

}  // namespace heed
