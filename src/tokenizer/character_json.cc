#include "tokenizer/character_json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

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
