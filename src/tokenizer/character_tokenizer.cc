#include "tokenizer/character_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

// Calls visit(begin, end) for the parts of `text` between the matches.
template <class Visit>
void for_each_gap(std::string_view text, const std::vector<AddedTokenMatch>& matches,
                  Visit&& visit) {
  std::size_t begin = 0;
  for (const AddedTokenMatch& match : matches) {
    visit(begin, match.begin);
    begin = match.end;
  }
  visit(begin, text.size());
}

constexpr std::string_view every_character =
    R"({"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": false})";
constexpr std::string_view fuse = R"({"type": "Fuse"})";

// Named by the format, and not in the vocabulary: an unknown character is then an error.
constexpr const char* no_unknown_token = "<unk>";

void require_step(const Json& document, const char* key, std::string_view expected,
                  std::string_view source) {
  const Json* step = find_json_member(document, key);
  require(step != nullptr && *step == Json::parse(expected), ErrorCode::unsupported,
          "{}: the {} of this WordLevel model is {}; only characters are supported: {}", source,
          key, step == nullptr ? "missing" : in_quotes(step->dump()), expected);
}

}  // namespace

CharacterTokenizer::CharacterTokenizer(const std::vector<std::string>& tokens,
                                       std::vector<AddedToken> added, std::string_view source)
    : Tokenizer({.vocabulary = Vocabulary(tokens, std::move(added), source),
                 .normalisation = {},
                 .text_template = {},
                 .unknown = std::nullopt},
                source) {
  ascii_ids_.fill(-1);
  for (std::int32_t id = 0; id < vocabulary_size(); ++id) {
    if (vocabulary().find_added(id) != nullptr) continue;
    const std::string& token = tokens[id];
    const Utf8Character character = token.empty() ? Utf8Character{} : read_utf8(token, 0);
    if (!character.valid || character.length != token.size()) {
      fail(ErrorCode::corrupt_data, "{}: the token {} ({}) is not one character", source, id,
           in_quotes(token));
    }
    if (!ids_.emplace(character.code_point, id).second) {
      fail(ErrorCode::corrupt_data, "{}: the character {} has two ids", source, in_quotes(token));
    }
    if (character.code_point < ascii_ids_.size()) ascii_ids_[character.code_point] = id;
  }
}

std::vector<std::int32_t> CharacterTokenizer::encode_prepared(const PreparedText& prepared,
                                                              StopFlag) const {
  const std::string_view text = prepared.text();
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  const std::vector<AddedTokenMatch>& matches = prepared.matches();
  auto match = matches.begin();
  for (std::size_t i = 0; i < text.size();) {
    if (match != matches.end() && match->begin == i) {
      tokens.push_back(match->id);
      i = match++->end;
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < ascii_ids_.size() && ascii_ids_[byte] >= 0) {
      tokens.push_back(ascii_ids_[byte]);
      ++i;
      continue;
    }
    const Utf8Character character = read_utf8(text, i);
    const auto found = character.valid ? ids_.find(character.code_point) : ids_.end();
    if (found == ids_.end()) {
      fail(ErrorCode::invalid_argument,
           "the character {} (U+{:04X}) at byte {} is not among the {} that this tokenizer knows",
           in_quotes(text.substr(i, character.length)),
           static_cast<std::uint32_t>(character.code_point), i, ids_.size());
    }
    tokens.push_back(found->second);
    i += character.length;
  }
  return tokens;
}

std::unique_ptr<CharacterTokenizer> train_character_tokenizer(
    std::span<const std::string_view> texts, const CharacterTrainingOptions& options) {
  std::vector<AddedToken> added;
  for (const std::string& content : options.special_tokens) {
    require(!content.empty() && is_valid_utf8(content), ErrorCode::invalid_argument,
            "the special token {} is not UTF-8 text", in_quotes(content));
    added.push_back({.id = 0, .content = content});
  }
  const AddedTokenMatcher matcher(added);

  std::set<char32_t> characters;
  std::array<bool, 128> ascii{};
  for (const std::string_view text : texts) {
    for_each_gap(text, matcher.find_all(text), [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end;) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte < ascii.size()) {
          ascii[byte] = true;
          ++i;
          continue;
        }
        const Utf8Character character = read_utf8(text, i);
        require(character.valid, ErrorCode::corrupt_data,
                "the text is not UTF-8: byte 0x{:02X} at byte {}", byte, i);
        characters.insert(character.code_point);
        i += character.length;
      }
    });
  }
  for (char32_t value = 0; value < ascii.size(); ++value) {
    if (ascii[value]) characters.insert(value);
  }
  require(!characters.empty(), ErrorCode::invalid_argument,
          "there is no text to take characters from");

  std::vector<std::string> tokens;
  for (const char32_t character : characters) append_utf8(tokens.emplace_back(), character);
  for (AddedToken& token : added) {
    const auto known = std::find(tokens.begin(), tokens.end(), token.content);
    require(known == tokens.end(), ErrorCode::invalid_argument,
            "the special token {} is already a token", in_quotes(token.content));
    token.id = static_cast<std::int32_t>(tokens.size());
    tokens.push_back(token.content);
  }
  return std::make_unique<CharacterTokenizer>(tokens, std::move(added), "the training text");
}

std::unique_ptr<Tokenizer> read_character_json(const Json& document, std::string_view source) {
  require_step(document, "pre_tokenizer", every_character, source);
  require_step(document, "decoder", fuse, source);
  require_json_value(document, "normalizer", {}, source);
  require_json_value(document, "post_processor", {}, source);
  const Json& model = json_member(document, "model", source);
  const Json& vocabulary = json_member(model, "vocab", source);
  const std::string& unknown = json_string_member(model, "unk_token", source);
  require(!vocabulary.is_object() || !vocabulary.contains(unknown), ErrorCode::unsupported,
          "{}: the unk_token {} is in the vocabulary and would hide unknown characters", source,
          in_quotes(unknown));
  auto added = read_added_tokens(document, source);
  const auto tokens = tokens_by_id(vocabulary, added, source);
  return std::make_unique<CharacterTokenizer>(tokens, std::move(added), source);
}

std::string CharacterTokenizer::to_json() const {
  std::string vocabulary_text;
  for (std::int32_t id = 0; id < vocabulary_size(); ++id) {
    vocabulary_text += fmt::format("{}\n      {}: {}", id == 0 ? "" : ",",
                                   json_quoted(vocabulary().bytes(id)), id);
  }
  const std::string model = fmt::format(
      "{{\n"
      "    \"type\": \"WordLevel\",\n"
      "    \"vocab\": {{{}\n    }},\n"
      "    \"unk_token\": {}\n"
      "  }}",
      vocabulary_text, json_quoted(no_unknown_token));
  return write_tokenizer_json(
      {.added = added_tokens(), .pre_tokenizer = every_character, .decoder = fuse, .model = model});
}

}  // namespace heed
