#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "tokenizer/utf8.h"

namespace heed {
namespace {

std::vector<AddedToken> without_special(const std::vector<AddedToken>& tokens) {
  std::vector<AddedToken> plain;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(plain),
               [](const AddedToken& token) { return !token.special; });
  return plain;
}

// FNV-1a, 64 bits.
std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return hash;
}

}  // namespace

const char* tokenizer_kind_name(TokenizerKind kind) {
  return kind == TokenizerKind::byte_pair ? "byte_pair" : "character";
}

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      all_added_(vocabulary_.added()),
      plain_added_(without_special(vocabulary_.added())) {
  for (const AddedToken& token : vocabulary_.added()) {
    if (token.content == end_of_text_name) end_of_text_ = token.id;
  }
}

std::vector<AddedTokenMatch> Tokenizer::find_added(std::string_view text,
                                                   EncodeOptions options) const {
  return (options.special_tokens ? all_added_ : plain_added_).find_all(text);
}

std::vector<TokenSpan> Tokenizer::encode_with_offsets(std::string_view text,
                                                      EncodeOptions options) const {
  std::vector<TokenSpan> spans;
  std::size_t begin = 0;
  for (const std::int32_t id : encode(text, options)) {
    const std::size_t end = begin + vocabulary_.bytes(id).size();
    spans.push_back({id, begin, end});
    begin = end;
  }
  check(begin == text.size(), "the tokens of a text cover it");
  return spans;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  std::string text;
  text.reserve(ids.size() * 4);
  for (const std::int32_t id : ids) text += vocabulary_.bytes(id);
  return text;
}

std::string Tokenizer::token_bytes(std::int32_t id) const {
  return std::string(vocabulary_.bytes(id));
}

std::string Tokenizer::token_text(std::int32_t id) const {
  return printable(vocabulary_.bytes(id));
}

void Tokenizer::save(const std::filesystem::path& directory) const {
  OutputDirectory made(directory);
  write_text_file(directory / tokenizer_file_name, to_json());
  made.keep();
}

std::string Tokenizer::content_key() const {
  return fmt::format("{}-{}-{:016x}", tokenizer_kind_name(kind()), vocabulary_size(),
                     hash_of(to_json()));
}

}  // namespace heed
