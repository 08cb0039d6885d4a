// SentencePiece's Unigram models in GGUF files, as T5 has them in spiece.model: under the keys of
// the kind t5, and one of heed's own for what these do not say.
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
  std::size_t pieces = 0;  // the first tokens are those of the model
  std::vector<AddedToken> added;
};

// Nothing where the key is absent. Throws Error{corrupt_data} naming it.
std::optional<GgufSentencePieces> find_gguf_sentence_pieces(const GgufFields& fields);

// What a tokenizer_config.json says of such a tokenizer, beside spiece.model.
void describe_sentence_pieces(const GgufSentencePieces& found, Json& config);

// Appends the keys, with as many tokens as the embedding has rows. False for a model that the kind
// t5 does not describe: of BPE, or with a vocabulary of its own.
bool add_sentence_pieces(const SentencePieceTokenizer& tokenizer, std::int64_t rows,
                         GgufMetadata& metadata);

// Whether both divide all texts alike, and have the same special tokens.
bool are_same(const SentencePieceTokenizer& left, const SentencePieceTokenizer& right);

}  // namespace heed
