// A precompiled map of characters, and a SentencePiece model with it, made by hand.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/charsmap.h"

namespace heed {

inline std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// The double array of a few keys. Every node has 256 units of its own for its children.
class CharsmapWriter {
 public:
  CharsmapWriter() : units_(block) { set_base(0, new_block()); }

  void add(std::string_view key, std::string_view replacement) {
    std::size_t node = 0;
    for (const char character : key) {
      const auto byte = static_cast<unsigned char>(character);
      const std::size_t child = base_[node] + byte;
      if (!base_.contains(child)) {
        units_[child] = byte;
        set_base(child, new_block());
      }
      node = child;
    }
    units_[node] |= 1u << 8;
    units_[base_[node]] = 1u << 31 | static_cast<std::uint32_t>(strings_.size());
    strings_ += replacement;
    strings_.push_back('\0');
  }

  std::string bytes() const {
    std::string result = little_endian(static_cast<std::uint32_t>(4 * units_.size()));
    for (const std::uint32_t unit : units_) result += little_endian(unit);
    return result + strings_;
  }

 private:
  static constexpr std::size_t block = 256;

  std::size_t new_block() {
    units_.resize(units_.size() + block, 1u << 31);  // leaves, which are no child of any byte
    return units_.size() - block;
  }
  void set_base(std::size_t node, std::size_t base) {
    units_[node] |= static_cast<std::uint32_t>(node ^ base) << 10;
    base_[node] = base;
  }

  std::vector<std::uint32_t> units_;
  std::map<std::size_t, std::size_t> base_;
  std::string strings_;
};

inline std::string small_charsmap() {
  CharsmapWriter writer;
  writer.add("\uFB01", "fi");
  writer.add("e\u0301", "\u00E9");
  writer.add("\u200B", "");
  writer.add("\r", " ");
  writer.add("\u2026", "...");
  return writer.bytes();
}

// Fields of a protocol buffer.
inline std::string protobuf_varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

inline std::string protobuf_number(int field, std::uint64_t value) {
  return protobuf_varint(static_cast<std::uint64_t>(field) << 3) + protobuf_varint(value);
}

inline std::string protobuf_bytes(int field, std::string_view value) {
  return protobuf_varint(static_cast<std::uint64_t>(field) << 3 | 2) +
         protobuf_varint(value.size()) + std::string(value);
}

inline std::string protobuf_float(int field, float value) {
  return protobuf_varint(static_cast<std::uint64_t>(field) << 3 | 5) +
         little_endian(std::bit_cast<std::uint32_t>(value));
}

inline std::string small_piece(std::string_view text, float score, int kind) {
  return protobuf_bytes(
      1, protobuf_bytes(1, text) + protobuf_float(2, score) + protobuf_number(3, kind));
}

// `model_type` is 1, Unigram, or 2, BPE.
inline std::string small_sentence_piece(std::uint64_t model_type = 1) {
  std::string model = small_piece("<unk>", 0, 2) + small_piece("</s>", 0, 3);
  float score = -1;
  for (const char* text : {"▁the", "▁t", "he", "▁", "t", "h", "e", "f", "i", "é", "."}) {
    model += small_piece(text, score, 1);
    score -= 0.5F;
  }
  model += small_piece("@@", 0, 4);
  model += protobuf_bytes(2, protobuf_number(3, model_type));
  return model + protobuf_bytes(3, protobuf_bytes(2, small_charsmap()));
}

}  // namespace heed
