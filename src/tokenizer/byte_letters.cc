#include "tokenizer/byte_letters.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/utf8.h"

namespace heed {
namespace {

constexpr char32_t first_substitute = 0x100;
constexpr int substitutes = 68;

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

}  // namespace

const std::array<char32_t, 256>& byte_letters() {
  static const std::array<char32_t, 256> letters = [] {
    std::array<char32_t, 256> table{};
    char32_t next = first_substitute;
    for (int byte = 0; byte < 256; ++byte) {
      table[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    }
    return table;
  }();
  return letters;
}

const std::array<unsigned char, 256>& bytes_by_letter() {
  static const std::array<unsigned char, 256> order = [] {
    std::array<unsigned char, 256> bytes{};
    std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
    std::sort(bytes.begin(), bytes.end(), [](unsigned char left, unsigned char right) {
      return byte_letters()[left] < byte_letters()[right];
    });
    return bytes;
  }();
  return order;
}

std::string bytes_to_letters(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    append_utf8(letters, byte_letters()[static_cast<unsigned char>(byte)]);
  }
  return letters;
}

std::optional<std::string> letters_to_bytes(std::string_view letters) {
  static const auto byte_of_letter = [] {
    std::array<std::int16_t, first_substitute + substitutes> table{};
    table.fill(-1);
    for (int byte = 0; byte < 256; ++byte) {
      table[byte_letters()[byte]] = static_cast<std::int16_t>(byte);
    }
    return table;
  }();
  std::string bytes;
  bytes.reserve(letters.size());
  for (std::size_t i = 0; i < letters.size();) {
    const Utf8Character letter = read_utf8(letters, i);
    if (!letter.valid || letter.code_point >= byte_of_letter.size()) return std::nullopt;
    const int byte = byte_of_letter[letter.code_point];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    i += letter.length;
  }
  return bytes;
}

}  // namespace heed
