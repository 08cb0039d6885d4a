// The parts of a SentencePiece model (a protocol buffer, ModelProto) that heed looks at. They are
// checked before the file is given to the library, which trusts them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

enum class PieceKind {
  normal = 1,
  unknown = 2,
  control = 3,       // <s>, </s>, <pad>: never found in texts
  user_defined = 4,  // always found
  unused = 5,
  byte = 6,
};

struct SentencePiece {
  std::string text;  // U+2581 is the space
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

struct SentencePieceModel {
  std::vector<SentencePiece> pieces;  // by id
  std::int32_t unknown = 0;
  bool byte_fallback = false;
  bool add_dummy_prefix = true;          // a space before every text
  bool remove_extra_whitespaces = true;  // at both ends, and all but one in a row
};

// Throws Error{corrupt_data} naming `source`, the field and its value; Error{unsupported} for
// models of whole words or single characters and for spaces behind words.
SentencePieceModel read_sentence_piece_model(std::string_view bytes, std::string_view source);

}  // namespace heed
