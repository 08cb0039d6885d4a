#include "tokenizer/metaspace.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

namespace heed {

std::string with_metaspaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char byte : text) {
    if (byte == ' ') {
      result += metaspace_character;
    } else {
      result.push_back(byte);
    }
  }
  return result;
}

std::string with_spaces(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(metaspace_character)) {
      result.push_back(' ');
      i += metaspace_character.size();
    } else {
      result.push_back(text[i++]);
    }
  }
  return result;
}

std::string byte_token_text(int byte) { return fmt::format("<0x{:02X}>", byte); }

std::vector<std::string> metaspace_token_bytes(const std::vector<std::string>& tokens,
                                               const std::vector<AddedToken>& added,
                                               bool byte_fallback) {
  std::unordered_set<std::string_view> added_texts;
  for (const AddedToken& token : added) added_texts.insert(token.content);
  std::unordered_map<std::string, char> byte_tokens;
  for (int byte = 0; byte < 256 && byte_fallback; ++byte) {
    byte_tokens.emplace(byte_token_text(byte), static_cast<char>(byte));
  }
  std::vector<std::string> bytes;
  bytes.reserve(tokens.size());
  for (const std::string& token : tokens) {
    const auto byte = byte_tokens.find(token);
    if (byte != byte_tokens.end() && !added_texts.contains(token)) {
      bytes.emplace_back(1, byte->second);
    } else {
      bytes.push_back(with_spaces(token));
    }
  }
  return bytes;
}

}  // namespace heed
