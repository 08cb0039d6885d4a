// GPT-2's letters for bytes: each of the 256 bytes is written as one printable character, so that
// any token can stand in a JSON file. Printable Latin-1 characters stand for themselves; the other
// 68 bytes take U+0100, U+0101, ... in ascending order (a space is written U+0120).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace heed {

// The character that stands for each byte.
const std::array<char32_t, 256>& byte_letters();

// The 256 bytes in ascending order of their letters: the order of GPT-2's first 256 ids.
const std::array<unsigned char, 256>& bytes_by_letter();

// Bytes written in byte letters (UTF-8).
std::string bytes_to_letters(std::string_view bytes);

// The bytes that byte letters stand for; nothing when a character is not a byte letter.
std::optional<std::string> letters_to_bytes(std::string_view letters);

}  // namespace heed
