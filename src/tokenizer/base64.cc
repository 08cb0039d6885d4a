#include "tokenizer/base64.h"

#include <cstdint>

namespace heed {
namespace {

// The six bits of a letter; -1 for any other character.
int six_bits(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  if (letter == '+') return 62;
  return letter == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t value = 0;
    for (std::size_t j = i; j < i + 4; ++j) {
      const int bits = j >= text.size() - padding ? 0 : six_bits(text[j]);
      if (bits < 0) return std::nullopt;
      value = value << 6 | static_cast<std::uint32_t>(bits);
    }
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift & 0xFF));
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace heed
