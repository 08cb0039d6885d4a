// U+2581, which stands for the space in vocabularies of SentencePiece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace heed {

inline constexpr std::string_view metaspace_character = "\u2581";

// Replaces each space by U+2581, and back.
std::string with_metaspaces(std::string_view text);
std::string with_spaces(std::string_view text);

// <0x00> to <0xFF>, the tokens of bytes.
std::string byte_token_text(int byte);

// What tokens stand for: bytes (if `byte_fallback` and it is no added token), or texts with spaces,
// also those of added tokens, such as Gemma's runs of U+2581.
std::vector<std::string> metaspace_token_bytes(const std::vector<std::string>& tokens,
                                               const std::vector<AddedToken>& added,
                                               bool byte_fallback);

}  // namespace heed
