#include "tokenizer/sentence_piece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_set>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/vocabulary.h"

namespace heed {
namespace {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtobufField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t integer = 0;  // of varint, fixed64 and fixed32
  std::string_view bytes;     // of bytes: a string or a message
};

// Reads the fields of a message, which is a list of numbered values.
class ProtobufFields {
 public:
  // `source` names the message in errors, and both views outlive the reader.
  ProtobufFields(std::string_view message, std::string_view source)
      : message_(message), source_(source) {}

  // False at the end. Throws Error{corrupt_data} naming the offset of what is no field, or of one
  // that is cut off.
  bool next(ProtobufField& field);

 private:
  std::uint64_t read_varint();
  std::string_view read_bytes(std::uint64_t size);
  std::uint64_t read_fixed(std::size_t size);

  std::string_view message_;
  std::string_view source_;
  std::size_t position_ = 0;
};

std::uint64_t ProtobufFields::read_varint() {
  const std::size_t begin = position_;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    require(position_ < message_.size(), ErrorCode::corrupt_data,
            "{}: the number at byte {} is cut off at byte {}", source_, begin, position_);
    const auto byte = static_cast<unsigned char>(message_[position_++]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail(ErrorCode::corrupt_data, "{}: the number at byte {} has more than 64 bits", source_, begin);
}

std::string_view ProtobufFields::read_bytes(std::uint64_t size) {
  require(size <= message_.size() - position_, ErrorCode::corrupt_data,
          "{}: a field at byte {} has {} bytes; {} are left", source_, position_, size,
          message_.size() - position_);
  const std::string_view bytes = message_.substr(position_, size);
  position_ += bytes.size();
  return bytes;
}

std::uint64_t ProtobufFields::read_fixed(std::size_t size) {
  std::uint64_t value = 0;
  int shift = 0;
  for (const char byte : read_bytes(size)) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(byte)) << shift;
    shift += 8;
  }
  return value;
}

bool ProtobufFields::next(ProtobufField& field) {
  if (position_ == message_.size()) return false;
  const std::size_t begin = position_;
  const std::uint64_t key = read_varint();
  constexpr std::uint64_t last_number = (1u << 29) - 1;
  require(key >> 3 >= 1 && key >> 3 <= last_number, ErrorCode::corrupt_data,
          "{}: field {} at byte {}; expected 1 to {}", source_, key >> 3, begin, last_number);
  field = {.number = static_cast<std::uint32_t>(key >> 3), .type = WireType(key & 7)};
  switch (field.type) {
    case WireType::varint: field.integer = read_varint(); return true;
    case WireType::fixed64: field.integer = read_fixed(8); return true;
    case WireType::fixed32: field.integer = read_fixed(4); return true;
    case WireType::bytes: field.bytes = read_bytes(read_varint()); return true;
  }
  fail(ErrorCode::corrupt_data, "{}: field {} at byte {} is of type {}; expected 0, 1, 2 or 5",
       source_, field.number, begin, key & 7);
}

// Writes a message, field by field.
class ProtobufWriter {
 public:
  void add(std::uint32_t number, std::uint64_t value) {
    begin(number, WireType::varint);
    append_varint(value);
  }
  void add(std::uint32_t number, float value) {
    begin(number, WireType::fixed32);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) {
      message_.push_back(static_cast<char>(bits >> (8 * byte) & 0xFF));
    }
  }
  void add(std::uint32_t number, std::string_view bytes) {
    begin(number, WireType::bytes);
    append_varint(bytes.size());
    message_ += bytes;
  }

  const std::string& message() const { return message_; }

 private:
  void begin(std::uint32_t number, WireType type) {
    append_varint((std::uint64_t{number} << 3) | static_cast<std::uint64_t>(type));
  }
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) message_.push_back(static_cast<char>((value & 0x7F) | 0x80));
    message_.push_back(static_cast<char>(value));
  }

  std::string message_;
};

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

constexpr std::size_t max_model = std::size_t{1} << 30;

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
      model.search = field.integer == bpe_model ? PieceSearch::bpe : PieceSearch::unigram;
    } else if (field.number == trainer_space_as_suffix) {
      require(!read_boolean(field, "treat_whitespace_as_suffix", source), ErrorCode::unsupported,
              "{}: 'treat_whitespace_as_suffix' is true; only false is supported", source);
    } else if (field.number == trainer_byte_fallback) {
      model.byte_fallback = read_boolean(field, "byte_fallback", source);
    }
  }
}

void read_normalizer(std::string_view message, SentencePieceModel& model, std::string_view source) {
  ProtobufFields fields(message, source);
  for (ProtobufField field; fields.next(field);) {
    if (field.number == normalizer_charsmap) {
      expect_type(field, WireType::bytes, "precompiled_charsmap", source);
      if (!field.bytes.empty()) model.charsmap.emplace(field.bytes, source);
      model.charsmap_bytes = field.bytes;
    } else if (field.number == normalizer_dummy_prefix) {
      model.add_dummy_prefix = read_boolean(field, "add_dummy_prefix", source);
    } else if (field.number == normalizer_extra_whitespaces) {
      model.remove_extra_whitespaces = read_boolean(field, "remove_extra_whitespaces", source);
    } else if (field.number == normalizer_escape_whitespaces) {
      require(read_boolean(field, "escape_whitespaces", source), ErrorCode::unsupported,
              "{}: 'escape_whitespaces' is false; only true is supported", source);
    }
  }
}

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
  require(!bytes.empty() && bytes.size() <= max_model, ErrorCode::corrupt_data,
          "{}: a SentencePiece model of {} bytes; expected 1 to {}", source, bytes.size(),
          max_model);
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

std::string write_sentence_piece_model(const SentencePieceModel& model) {
  ProtobufWriter file;
  for (const SentencePiece& piece : model.pieces) {
    ProtobufWriter message;
    message.add(piece_text, std::string_view(piece.text));
    message.add(piece_score, piece.score);
    message.add(piece_kind, static_cast<std::uint64_t>(piece.kind));
    file.add(model_pieces, std::string_view(message.message()));
  }
  ProtobufWriter trainer;
  trainer.add(trainer_model_type, model.search == PieceSearch::bpe ? bpe_model : unigram_model);
  trainer.add(trainer_byte_fallback, std::uint64_t{model.byte_fallback});
  file.add(model_trainer, std::string_view(trainer.message()));
  ProtobufWriter normalizer;
  normalizer.add(normalizer_charsmap, std::string_view(model.charsmap_bytes));
  normalizer.add(normalizer_dummy_prefix, std::uint64_t{model.add_dummy_prefix});
  normalizer.add(normalizer_extra_whitespaces, std::uint64_t{model.remove_extra_whitespaces});
  normalizer.add(normalizer_escape_whitespaces, std::uint64_t{1});
  file.add(model_normalizer, std::string_view(normalizer.message()));
  return file.message();
}

SentencePieceEncoder::SentencePieceEncoder(SentencePieceModel model) : model_(std::move(model)) {
  min_score_ = std::numeric_limits<float>::max();
  max_score_ = std::numeric_limits<float>::min();  // and not lowest(), as the library has it
  std::vector<std::pair<std::string_view, std::int32_t>> found, user_defined;
  for (std::size_t i = 0; i < model_.pieces.size(); ++i) {
    const SentencePiece& piece = model_.pieces[i];
    const std::pair entry(std::string_view(piece.text), static_cast<std::int32_t>(i));
    ids_.insert(entry);
    if (piece.kind == PieceKind::normal) {
      min_score_ = std::min(min_score_, piece.score);
      max_score_ = std::max(max_score_, piece.score);
    }
    if (piece.kind == PieceKind::user_defined) user_defined.push_back(entry);
    const bool is_found = piece.kind == PieceKind::normal ||
                          piece.kind == PieceKind::user_defined || piece.kind == PieceKind::unused;
    if (is_found) found.push_back(entry);
  }
  for (int byte = 0; byte < 256 && model_.byte_fallback; ++byte) {
    byte_pieces_[static_cast<std::size_t>(byte)] = ids_.at(byte_token_text(byte));
  }
  found_ = TokenTrie(std::move(found));
  user_defined_ = TokenTrie(std::move(user_defined));
}

// What the text begins with, and what becomes of it. Pieces of users stay as they are.
Charsmap::Match SentencePieceEncoder::normalised_prefix(std::string_view text) const {
  const std::size_t kept = user_defined_.longest_prefix(text).size;
  if (kept > 0) return {kept, text.substr(0, kept)};
  if (model_.charsmap) {
    const Charsmap::Match match = model_.charsmap->longest_match(text);
    if (match.size > 0) return match;
  }
  const Utf8Character character = read_utf8(text, 0);
  if (!character.valid) return {1, "\uFFFD"};
  return {character.length, text.substr(0, character.length)};
}

SentencePieceEncoder::Normalised SentencePieceEncoder::normalised(std::string_view text,
                                                                  Prefix prefix) const {
  Normalised result;
  std::size_t begin = 0;  // of what is not yet normalised
  const auto append = [&](std::string_view bytes) {
    result.text += bytes;
    result.origins.resize(result.text.size(), static_cast<std::uint32_t>(begin));
  };
  const bool trims = model_.remove_extra_whitespaces;
  while (trims && begin < text.size()) {
    const Charsmap::Match match = normalised_prefix(text.substr(begin));
    if (match.replacement != " ") break;
    begin += match.size;
  }
  if (begin == text.size()) return result;
  if (model_.add_dummy_prefix && prefix == Prefix::of_model) append(metaspace_character);
  bool after_space = trims;
  while (begin < text.size()) {
    const Charsmap::Match match = normalised_prefix(text.substr(begin));
    std::string_view bytes = match.replacement;
    while (after_space && bytes.starts_with(' ')) bytes.remove_prefix(1);
    if (!bytes.empty()) after_space = trims && bytes.ends_with(' ');
    for (const char& byte : bytes) {
      append(byte == ' ' ? metaspace_character : std::string_view(&byte, 1));
    }
    begin += match.size;
  }
  while (trims && result.text.ends_with(metaspace_character)) {
    result.text.resize(result.text.size() - metaspace_character.size());
    begin = result.origins[result.text.size()];
    result.origins.resize(result.text.size());
  }
  result.origins.push_back(static_cast<std::uint32_t>(begin));
  return result;
}

// Viterbi: the best way to every position, from left to right; the first of equals. Sums are in
// single precision, and compared in double where a score is, as the library does.
std::vector<SentencePieceEncoder::Found> SentencePieceEncoder::most_likely(
    std::string_view text) const {
  constexpr float unknown_penalty = 10;
  constexpr std::size_t unreached = SIZE_MAX;
  struct Best {
    float score = 0;
    std::int32_t piece = -1;
    std::size_t begin = unreached;
  };
  std::vector<Best> best(text.size() + 1);
  for (std::size_t begin = 0; begin < text.size();) {
    const float before = best[begin].score;
    const std::size_t character = read_utf8(text, begin).length;
    const auto offer = [&](std::int32_t piece, std::size_t size, double score) {
      Best& end = best[begin + size];
      const double sum = score + before;
      if (end.begin != unreached && sum <= end.score) return;
      end = {static_cast<float>(sum), piece, begin};
    };
    bool has_character = false;
    found_.for_each_prefix(text.substr(begin), [&](std::int32_t piece, std::size_t size) {
      if (is(piece, PieceKind::unused)) return;
      const double score = is(piece, PieceKind::user_defined)
                               ? static_cast<float>(size) * max_score_ - 0.1
                               : model_.pieces[static_cast<std::size_t>(piece)].score;
      offer(piece, size, score);
      has_character = has_character || size == character;
    });
    if (!has_character) {
      // In single precision.
      const float sum = min_score_ - unknown_penalty + before;
      Best& end = best[begin + character];
      if (end.begin == unreached || sum > end.score) end = {sum, model_.unknown, begin};
    }
    begin += character;
  }
  std::vector<Found> path;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
    path.push_back({best[end].begin, end, best[end].piece});
  }
  std::ranges::reverse(path);
  return path;
}

// Characters, and pieces of users, that are merged to larger pieces: always the two neighbours
// whose piece has the highest score, of equals the first.
class SentencePieceEncoder::Merges {
 public:
  Merges(const SentencePieceEncoder& encoder, std::string_view text)
      : encoder_(encoder), text_(text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t whole = encoder.user_defined_.longest_prefix(text.substr(begin)).size;
      const std::size_t size = whole > 0 ? whole : read_utf8(text, begin).length;
      parts_.push_back(
          {begin, size, index(parts_.size()) - 1, index(parts_.size()) + 1, whole > 0});
      begin += size;
    }
    if (!parts_.empty()) parts_.back().next = -1;
    for (std::size_t i = 1; i < parts_.size(); ++i) offer(index(i) - 1, index(i));
  }

  std::vector<Found> run() {
    while (!offers_.empty()) {
      const Offer best = offers_.top();
      offers_.pop();
      Part& left = part(best.left);
      Part& right = part(best.right);
      if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
      left.size = best.size;
      left.next = right.next;
      if (right.next >= 0) part(right.next).previous = best.left;
      right.size = 0;
      offer(left.previous, best.left);
      offer(best.left, left.next);
    }
    std::vector<Found> found;
    for (std::int32_t i = parts_.empty() ? -1 : 0; i >= 0; i = part(i).next) {
      append(part(i).begin, part(i).size, found);
    }
    return found;
  }

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t size = 0;  // 0: it has become a part of the previous one
    std::int32_t previous = -1;
    std::int32_t next = -1;
    bool is_whole = false;  // never merged
  };
  struct Offer {
    float score = 0;
    std::int32_t left = 0;
    std::int32_t right = 0;
    std::size_t size = 0;

    bool operator<(const Offer& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  static std::int32_t index(std::size_t i) { return static_cast<std::int32_t>(i); }
  Part& part(std::int32_t i) { return parts_[static_cast<std::size_t>(i)]; }

  void offer(std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0 || part(left).is_whole || part(right).is_whole) return;
    const std::size_t size = part(left).size + part(right).size;
    const std::string_view text = text_.substr(part(left).begin, size);
    const auto match = encoder_.found_.longest_prefix(text);
    if (match.size != size) return;
    offers_.push(
        {encoder_.model_.pieces[static_cast<std::size_t>(match.id)].score, left, right, size});
    if (encoder_.is(match.id, PieceKind::unused)) splits_[text] = part(left).size;
  }

  // Pieces that are not used become those that they were merged from.
  void append(std::size_t begin, std::size_t size, std::vector<Found>& found) const {
    std::vector<std::pair<std::size_t, std::size_t>> rest = {{begin, size}};
    while (!rest.empty()) {
      const auto [at, length] = rest.back();
      rest.pop_back();
      const std::string_view text = text_.substr(at, length);
      const auto known = encoder_.ids_.find(text);
      const std::int32_t piece =
          known == encoder_.ids_.end() ? encoder_.model_.unknown : known->second;
      const auto split = encoder_.is(piece, PieceKind::unused) ? splits_.find(text) : splits_.end();
      if (split == splits_.end()) {
        found.push_back({at, at + length, piece});
      } else {
        rest.emplace_back(at + split->second, length - split->second);
        rest.emplace_back(at, split->second);
      }
    }
  }

  const SentencePieceEncoder& encoder_;
  std::string_view text_;
  std::vector<Part> parts_;
  std::priority_queue<Offer> offers_;
  std::unordered_map<std::string_view, std::size_t> splits_;  // where the left part ends
};

void SentencePieceEncoder::encode(std::string_view text, Prefix prefix,
                                  const std::function<void(const Token&)>& visit) const {
  const Normalised prepared = normalised(text, prefix);
  const std::string_view whole = prepared.text;
  const std::vector<Found> found =
      model_.search == PieceSearch::unigram ? most_likely(whole) : Merges(*this, whole).run();
  for (std::size_t i = 0; i < found.size(); ++i) {
    Found next = found[i];
    if (next.piece != model_.unknown) {
      const std::string_view piece = whole.substr(next.begin, next.end - next.begin);
      visit({next.piece, piece, prepared.origins[next.end]});
    } else if (model_.byte_fallback) {
      for (std::size_t j = next.begin; j < next.end; ++j) {
        const std::int32_t piece = byte_pieces_[static_cast<unsigned char>(whole[j])];
        const bool is_last = j + 1 == next.end;
        visit({piece, model_.pieces[static_cast<std::size_t>(piece)].text,
               prepared.origins[is_last ? next.end : next.begin]});
      }
    } else {  // those in a row are one token
      while (i + 1 < found.size() && found[i + 1].piece == model_.unknown)
        next.end = found[++i].end;
      visit({next.piece, whole.substr(next.begin, next.end - next.begin),
             prepared.origins[next.end]});
    }
  }
}

}  // namespace heed
