#include "tokenizer/byte_pair_json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_fields.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/utf8.h"

namespace heed {
namespace {

constexpr std::string_view byte_level =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";

// Rejects options that change the merging.
void check_model(const Json& model, std::string_view source) {
  require_json_value(model, "dropout", {0}, source);
  require_json_value(model, "continuing_subword_prefix", {""}, source);
  require_json_value(model, "end_of_word_suffix", {""}, source);
  require_json_value(model, "byte_fallback", {false}, source);
  require_json_value(model, "ignore_merges", {false}, source);
}

// GPT-2's pre-tokenizer, alone or as the only one of a sequence.
void check_pre_tokenizer(const Json& document, std::string_view source) {
  const Json* step = find_json_member(document, "pre_tokenizer");
  if (step != nullptr && step->is_object() && step->value("type", Json()) == "Sequence") {
    const Json* steps = find_json_member(*step, "pretokenizers");
    if (steps != nullptr && steps->is_array() && steps->size() == 1) step = &steps->front();
  }
  require(step != nullptr && step->is_object() && step->value("type", Json()) == "ByteLevel",
          ErrorCode::unsupported,
          "{}: the pre_tokenizer is {}; only ByteLevel, as GPT-2 has it, is supported", source,
          step == nullptr ? "missing" : in_quotes(step->dump()));
  require_json_value(*step, "use_regex", {true}, source);
  require(step->value("add_prefix_space", Json(true)) == Json(false), ErrorCode::unsupported,
          "{}: the pre_tokenizer adds a space before the text (add_prefix_space); only false is "
          "supported",
          source);
}

// A post-processor or decoder of type ByteLevel changes no id; any other may.
void check_byte_level_or_null(const Json& document, const char* key, std::string_view source) {
  const Json* step = find_json_member(document, key);
  if (step == nullptr) return;
  require(step->is_object() && step->value("type", Json()) == "ByteLevel", ErrorCode::unsupported,
          "{}: the {} is {}; only ByteLevel is supported", source, key, in_quotes(step->dump()));
}

// "a b", or the pair ["a", "b"].
std::pair<std::string, std::string> read_merge(const Json& merge, std::size_t rank,
                                               std::string_view source) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (!merge.is_string()) {
    fail(ErrorCode::corrupt_data, "{}: merge {} is {}; expected \"a b\" or [\"a\", \"b\"]", source,
         rank, in_quotes(merge.dump()));
  }
  const auto& text = merge.get_ref<const std::string&>();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    fail(ErrorCode::corrupt_data, "{}: merge {} is {}; expected two parts and a space between",
         source, rank, in_quotes(text));
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

}  // namespace

std::unique_ptr<Tokenizer> read_byte_pair_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  check_model(model, source);
  check_pre_tokenizer(document, source);
  check_byte_level_or_null(document, "post_processor", source);
  check_byte_level_or_null(document, "decoder", source);

  BytePairTexts texts;
  texts.added = read_added_tokens(document, source);
  texts.tokens = tokens_by_id(json_member(model, "vocab", source), texts.added, source);
  const Json& merges = json_member(model, "merges", source);
  if (!merges.is_array()) {
    fail(ErrorCode::corrupt_data, "{}: 'merges' is {}; expected an array", source,
         in_quotes(merges.dump()));
  }
  texts.merges.reserve(merges.size());
  for (const Json& merge : merges) {
    texts.merges.push_back(read_merge(merge, texts.merges.size(), source));
  }
  return std::make_unique<BytePairTokenizer>(read_byte_letters(texts, source), source);
}

std::string BytePairTokenizer::to_json() const {
  std::string vocabulary_text;
  std::string merges_text;
  for (std::int32_t id = 0; id < vocabulary_size(); ++id) {
    vocabulary_text +=
        fmt::format("{}\n      {}: {}", id == 0 ? "" : ",", json_quoted(token_letters(id)), id);
  }
  for (const MergeRule& merge : merges_) {
    merges_text +=
        fmt::format("{}\n      {}", merges_text.empty() ? "" : ",",
                    json_quoted(token_letters(merge.left) + " " + token_letters(merge.right)));
  }
  const std::string model = fmt::format(
      "{{\n"
      "    \"type\": \"BPE\",\n"
      "    \"dropout\": null,\n"
      "    \"unk_token\": null,\n"
      "    \"continuing_subword_prefix\": null,\n"
      "    \"end_of_word_suffix\": null,\n"
      "    \"fuse_unk\": false,\n"
      "    \"byte_fallback\": false,\n"
      "    \"vocab\": {{{}\n    }},\n"
      "    \"merges\": [{}{}]\n"
      "  }}",
      vocabulary_text, merges_text, merges_text.empty() ? "" : "\n    ");
  return write_tokenizer_json({.added = added_tokens(),
                               .pre_tokenizer = byte_level,
                               .post_processor = byte_level,
                               .decoder = byte_level,
                               .model = model});
}

}  // namespace heed
