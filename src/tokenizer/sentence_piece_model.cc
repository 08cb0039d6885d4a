#include "tokenizer/sentence_piece_model.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/metaspace.h"
#include "tokenizer/protobuf_fields.h"
#include "tokenizer/vocabulary.h"

namespace heed {
namespace {

// Numbers of fields in sentencepiece_model.proto.
constexpr std::uint32_t model_pieces = 1;
constexpr std::uint32_t model_trainer = 2;
constexpr std::uint32_t model_normalizer = 3;
constexpr std::uint32_t model_denormalizer = 5;
constexpr std::uint32_t piece_text = 1;
constexpr std::uint32_t piece_score = 2;
constexpr std::uint32_t piece_kind = 3;
constexpr std::uint32_t trainer_model_type = 3;
constexpr std::uint32_t trainer_space_as_suffix = 24;
constexpr std::uint32_t trainer_byte_fallback = 35;
constexpr std::uint32_t normalizer_charsmap = 2;
constexpr std::uint32_t normalizer_dummy_prefix = 3;
constexpr std::uint32_t normalizer_extra_whitespaces = 4;
constexpr std::uint32_t normalizer_escape_whitespaces = 5;

constexpr std::uint64_t unigram_model = 1;
constexpr std::uint64_t bpe_model = 2;

// SentencePiece's library keeps lengths in 32 bits.
constexpr std::size_t largest_model = std::size_t{1} << 30;

void expect_type(const ProtobufField& field, WireType type, const char* name,
                 std::string_view source) {
  require(field.type == type, ErrorCode::corrupt_data, "{}: '{}' is of wire type {}; expected {}",
          source, name, static_cast<int>(field.type), static_cast<int>(type));
}

bool read_boolean(const ProtobufField& field, const char* name, std::string_view source) {
  expect_type(field, WireType::varint, name, source);
  return field.integer != 0;
}

SentencePiece read_piece(std::string_view message, std::size_t id, std::string_view source) {
  const std::string where = fmt::format("{}: piece {}", source, id);
  SentencePiece piece;
  ProtobufFields fields(message, where);
  for (ProtobufField field; fields.next(field);) {
    if (field.number == piece_text) {
      expect_type(field, WireType::bytes, "piece", where);
      piece.text = field.bytes;
    } else if (field.number == piece_score) {
      expect_type(field, WireType::fixed32, "score", where);
      piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.integer));
    } else if (field.number == piece_kind) {
      expect_type(field, WireType::varint, "type", where);
      require(field.integer >= 1 && field.integer <= 6, ErrorCode::corrupt_data,
              "{}: 'type' is {}; expected 1 to 6", where, field.integer);
      piece.kind = static_cast<PieceKind>(field.integer);
    }
  }
  const bool is_text = !piece.text.empty() && is_valid_utf8(piece.text) &&
                       piece.text.find('\0') == std::string::npos;
  if (!is_text) {
    fail(ErrorCode::corrupt_data, "{} is {}; expected UTF-8 text", where, in_quotes(piece.text));
  }
  require_sought_size(piece.text, static_cast<std::int64_t>(id), source);
  require(std::isfinite(piece.score), ErrorCode::corrupt_data, "{}: 'score' is {}", where,
          piece.score);
  return piece;
}

void read_trainer(std::string_view message, SentencePieceModel& model, std::string_view source) {
  ProtobufFields fields(message, source);
  for (ProtobufField field; fields.next(field);) {
    if (field.number == trainer_model_type) {
      expect_type(field, WireType::varint, "model_type", source);
      require(field.integer == unigram_model || field.integer == bpe_model, ErrorCode::unsupported,
              "{}: 'model_type' is {}; supported are {} (Unigram) and {} (BPE)", source,
              field.integer, unigram_model, bpe_model);
    } else if (field.number == trainer_space_as_suffix) {
      require(!read_boolean(field, "treat_whitespace_as_suffix", source), ErrorCode::unsupported,
              "{}: 'treat_whitespace_as_suffix' is true; only false is supported", source);
    } else if (field.number == trainer_byte_fallback) {
      model.byte_fallback = read_boolean(field, "byte_fallback", source);
    }
  }
}

void check_map(const ProtobufField& field, std::string_view source) {
  expect_type(field, WireType::bytes, "precompiled_charsmap", source);
  if (!field.bytes.empty()) Charsmap(field.bytes, source);
}

void read_normalizer(std::string_view message, SentencePieceModel& model, std::string_view source) {
  ProtobufFields fields(message, source);
  for (ProtobufField field; fields.next(field);) {
    if (field.number == normalizer_charsmap) check_map(field, source);
    if (field.number == normalizer_dummy_prefix) {
      model.add_dummy_prefix = read_boolean(field, "add_dummy_prefix", source);
    } else if (field.number == normalizer_extra_whitespaces) {
      model.remove_extra_whitespaces = read_boolean(field, "remove_extra_whitespaces", source);
    } else if (field.number == normalizer_escape_whitespaces) {
      require(read_boolean(field, "escape_whitespaces", source), ErrorCode::unsupported,
              "{}: 'escape_whitespaces' is false; only true is supported", source);
    }
  }
}

// What the library would refuse, or not survive.
void check_pieces(SentencePieceModel& model, std::string_view source) {
  std::unordered_set<std::string_view> seen;
  std::optional<std::size_t> unknown;
  int bytes = 0;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    require(seen.insert(piece.text).second, ErrorCode::corrupt_data, "{}: the piece {} has two ids",
            source, in_quotes(piece.text));
    if (piece.kind == PieceKind::unknown) {
      require(!unknown, ErrorCode::corrupt_data, "{}: the pieces {} and {} are both unknown",
              source, unknown.value_or(0), id);
      unknown = id;
    }
    bytes += piece.kind == PieceKind::byte ? 1 : 0;
  }
  require(unknown.has_value(), ErrorCode::corrupt_data, "{}: none of the {} pieces is unknown",
          source, model.pieces.size());
  model.unknown = static_cast<std::int32_t>(*unknown);
  const int wanted = model.byte_fallback ? 256 : 0;
  require(bytes == wanted, ErrorCode::corrupt_data,
          "{}: {} pieces are bytes, and 'byte_fallback' is {}; expected {}", source, bytes,
          model.byte_fallback, wanted);
  for (int byte = 0; byte < wanted; ++byte) {
    require(seen.contains(byte_token_text(byte)), ErrorCode::corrupt_data,
            "{}: there is no piece {}; byte_fallback needs all 256", source, byte_token_text(byte));
  }
}

}  // namespace

SentencePieceModel read_sentence_piece_model(std::string_view bytes, std::string_view source) {
  require(!bytes.empty() && bytes.size() <= largest_model, ErrorCode::corrupt_data,
          "{}: a SentencePiece model of {} bytes; expected 1 to {}", source, bytes.size(),
          largest_model);
  SentencePieceModel model;
  std::unordered_set<std::uint32_t> seen;
  ProtobufFields fields(bytes, source);
  for (ProtobufField field; fields.next(field);) {
    if (field.number == model_pieces) {
      expect_type(field, WireType::bytes, "pieces", source);
      model.pieces.push_back(read_piece(field.bytes, model.pieces.size(), source));
      continue;
    }
    const bool is_known = field.number == model_trainer || field.number == model_normalizer ||
                          field.number == model_denormalizer;
    if (!is_known) continue;
    const char* name = field.number == model_trainer      ? "trainer_spec"
                       : field.number == model_normalizer ? "normalizer_spec"
                                                          : "denormalizer_spec";
    expect_type(field, WireType::bytes, name, source);
    require(seen.insert(field.number).second, ErrorCode::corrupt_data, "{}: '{}' is there twice",
            source, name);
    const std::string where = fmt::format("{}: {}", source, name);
    if (field.number == model_trainer) {
      read_trainer(field.bytes, model, where);
    } else {
      SentencePieceModel other;  // what a denormaliser says of spaces is not used
      read_normalizer(field.bytes, field.number == model_normalizer ? model : other, where);
    }
  }
  check_pieces(model, source);
  return model;
}

}  // namespace heed
