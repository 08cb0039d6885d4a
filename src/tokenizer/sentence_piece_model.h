// SentencePiece models (protocol buffers, ModelProto), read and applied to texts.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/charsmap.h"
#include "tokenizer/vocabulary.h"

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

  bool operator==(const SentencePiece&) const = default;
};

enum class PieceSearch { unigram, bpe };

struct SentencePieceModel {
  PieceSearch search = PieceSearch::unigram;
  std::vector<SentencePiece> pieces;  // by id
  std::int32_t unknown = 0;
  bool byte_fallback = false;
  bool add_dummy_prefix = true;          // a space before every text
  bool remove_extra_whitespaces = true;  // at both ends, and all but one in a row
  std::optional<Charsmap> charsmap;
  std::string charsmap_bytes{};  // what it is read from
};

// Throws Error{corrupt_data} naming `source`, the field and its value; Error{unsupported} for
// models of whole words or single characters and for spaces after words.
SentencePieceModel read_sentence_piece_model(std::string_view bytes, std::string_view source);

// A file that is read as the model; the map of characters is that of `charsmap_bytes`.
std::string write_sentence_piece_model(const SentencePieceModel& model);

// Divides texts into pieces, as SentencePiece's library does: the normalised text (NFKC and more,
// by the model's map of characters) is the most likely row of pieces (Unigram), or merged from
// characters, the best merge first (BPE).
class SentencePieceEncoder {
 public:
  explicit SentencePieceEncoder(SentencePieceModel model);

  const SentencePieceModel& model() const { return model_; }

  struct Token {
    std::int32_t piece = 0;
    std::string_view text;  // of the piece or, of unknown characters, what they are normalised to
    std::size_t end = 0;    // in the text that is encoded; it begins where the last one ends
  };
  // Whether the model's space is put before a text.
  enum class Prefix { of_model, none };

  // Calls visit(token) for each token. `text` has fewer than 2³¹ bytes.
  void encode(std::string_view text, Prefix prefix,
              const std::function<void(const Token&)>& visit) const;

 private:
  // A piece of normalised text.
  struct Found {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t piece = 0;
  };
  // With where in the original each byte stands, and the end.
  struct Normalised {
    std::string text;
    std::vector<std::uint32_t> origins;
  };
  class Merges;

  Normalised normalised(std::string_view text, Prefix prefix) const;
  Charsmap::Match normalised_prefix(std::string_view text) const;
  std::vector<Found> most_likely(std::string_view text) const;
  bool is(std::int32_t piece, PieceKind kind) const {
    return model_.pieces[static_cast<std::size_t>(piece)].kind == kind;
  }

  SentencePieceModel model_;
  std::array<std::int32_t, 256> byte_pieces_{};             // with byte_fallback
  std::unordered_map<std::string_view, std::int32_t> ids_;  // of all pieces
  TokenTrie found_;                                         // pieces that texts may hold
  TokenTrie user_defined_;
  float min_score_ = 0;  // of normal pieces
  float max_score_ = 0;
};

}  // namespace heed
