// Maps texts character by character.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8.h"
#include "tokenizer/normalisation.h"

namespace heed {

// Appends the lower-case form of a character, as Unicode has it for a character alone.
void append_lowercase(char32_t code_point, std::string& text);

// `append(code_point, mapped)` appends to `mapped` what becomes of a character. Bytes that are not
// UTF-8 stay.
template <class Append>
void map_characters(std::string_view text, ChangedText& result, Append&& append) {
  std::size_t kept = 0;  // everything before is in `result`
  std::string mapped;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Character character = read_utf8(text, i);
    const std::string_view source = text.substr(i, character.length);
    mapped.clear();
    if (character.valid) {
      append(character.code_point, mapped);
      if (mapped != source) {
        result.keep(text.substr(kept, i - kept));
        result.replace(source.size(), mapped);
        kept = i + source.size();
      }
    }
    i += source.size();
  }
  result.keep(text.substr(kept));
}

}  // namespace heed
