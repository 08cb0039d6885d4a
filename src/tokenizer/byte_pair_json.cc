#include "tokenizer/byte_pair_json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizer/bpe_json.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

constexpr const char* pre_tokenizer_key = "pre_tokenizer";
constexpr const char* known_steps =
    "ByteLevel, alone, behind Digits, or behind a Split by the pattern of LLaMA 3, Qwen2, GPT-4o "
    "or "
    "Mistral NeMo";

constexpr std::string_view byte_level =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
constexpr std::string_view byte_level_alone =
    R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})";

// A Split whose pieces are the matches of a known pattern, which match everything.
WordPattern read_split(const Json& step, std::string_view source) {
  const Json& pattern = json_member(step, "pattern", source);
  const Json* expression = find_json_member(pattern, "Regex");
  require(expression != nullptr && expression->is_string(), ErrorCode::unsupported,
          "{}: the pre_tokenizer splits by {}; only known regular expressions are supported",
          source, shown_in_quotes(pattern));
  const auto& text = expression->get_ref<const std::string&>();
  const std::optional<WordPattern> known = find_word_pattern(text);
  require(
      known.has_value(), ErrorCode::unsupported,
      "{}: the pre_tokenizer splits by the pattern '{}', which is none of the known ones: those "
      "of GPT-2, LLaMA 3, Qwen2, GPT-4o (o200k) and Mistral NeMo (tekken)",
      source, printable(text));
  const std::string& behavior = json_string_member(step, "behavior", source);
  const bool invert = json_boolean_member(step, "invert", false, source);
  require(behavior == "Isolated" || (behavior == "Removed" && invert), ErrorCode::unsupported,
          "{}: the pre_tokenizer splits with 'behavior' {} and 'invert' {}; supported is Isolated, "
          "and Removed with 'invert' true",
          source, in_quotes(behavior), invert);
  return *known;
}

// Digits (Unicode's numbers) apart, each alone or in runs. GPT-2's words, which ByteLevel finds,
// are cut from the text between them.
WordPattern read_digits(const Json& step, std::string_view source) {
  return json_boolean_member(step, "individual_digits", false, source) ? WordPattern::gpt2_digits
                                                                       : WordPattern::gpt2_numbers;
}

// 'use_regex' of ByteLevel is for texts that no Split has cut by a pattern.
void check_byte_level_pattern(bool use_regex, const std::optional<WordPattern>& before,
                              std::string_view source) {
  const bool is_digits = before && sets_digits_apart(*before);
  require(!is_digits || use_regex, ErrorCode::unsupported,
          "{}: 'use_regex' of ByteLevel is false behind the step 'Digits'; expected true", source);
  require(is_digits || use_regex != before.has_value(), ErrorCode::unsupported,
          "{}: 'use_regex' of ByteLevel is {} {} a Split; expected the contrary", source, use_regex,
          before ? "behind" : "without");
}

WordPattern read_pre_tokenizer(const Json& document, std::string_view source) {
  const auto steps = read_steps(document, pre_tokenizer_key, "pretokenizers", source);
  require(!steps.empty(), ErrorCode::unsupported,
          "{}: the pre_tokenizer is missing; supported is {}", source, known_steps);
  std::optional<WordPattern> before;  // of the step before ByteLevel
  bool encodes_bytes = false;
  for (const Json* step : steps) {
    const std::string& type = step_type(*step);
    if ((type == "Split" || type == "Digits") && !before && !encodes_bytes) {
      before = type == "Split" ? read_split(*step, source) : read_digits(*step, source);
      continue;
    }
    if (type != "ByteLevel" || encodes_bytes) {
      refuse_step(*step, pre_tokenizer_key, known_steps, source);
    }
    encodes_bytes = true;
    require(!json_boolean_member(*step, "add_prefix_space", true, source), ErrorCode::unsupported,
            "{}: the pre_tokenizer adds a space before the text (add_prefix_space); only false is "
            "supported",
            source);
    check_byte_level_pattern(json_boolean_member(*step, "use_regex", true, source), before, source);
  }
  require(encodes_bytes, ErrorCode::unsupported,
          "{}: the pre_tokenizer has no step of type ByteLevel; supported is {}", source,
          known_steps);
  return before.value_or(WordPattern::gpt2);
}

// Whether texts are brought to normalisation form C.
bool read_nfc(const Json& document, std::string_view source) {
  bool nfc = false;
  for (const Json* step : read_steps(document, "normalizer", "normalizers", source)) {
    if (step_type(*step) != "NFC") {
      refuse_step(*step, "normalizer", "NFC before ByteLevel", source);
    }
    nfc = true;
  }
  return nfc;
}

// A decoder of type ByteLevel puts the bytes together again; any other may change them.
void check_decoder(const Json& document, std::string_view source) {
  for (const Json* step : read_steps(document, "decoder", "decoders", source)) {
    if (step_type(*step) != "ByteLevel") refuse_step(*step, "decoder", "ByteLevel", source);
  }
}

std::string pre_tokenizer_text(WordPattern pattern) {
  if (pattern == WordPattern::gpt2) return std::string(byte_level);
  if (sets_digits_apart(pattern)) {
    return fmt::format(
        R"({{"type": "Sequence", "pretokenizers": [{{"type": "Digits", "individual_digits": {}}}, )"
        R"({}]}})",
        pattern == WordPattern::gpt2_digits, byte_level);
  }
  return fmt::format(
      R"({{"type": "Sequence", "pretokenizers": [{{"type": "Split", "pattern": {{"Regex": {}}}, )"
      R"("behavior": "Isolated", "invert": false}}, {}]}})",
      json_quoted(word_pattern_text(pattern)), byte_level_alone);
}

}  // namespace

std::unique_ptr<Tokenizer> read_byte_pair_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  check_bpe_model(model, source);
  const WordPattern pattern = read_pre_tokenizer(document, source);
  require_json_value(model, "byte_fallback", {false}, source);
  const bool nfc = read_nfc(document, source);
  check_decoder(document, source);

  BytePairTexts texts;
  texts.added = read_added_tokens(document, source);
  texts.tokens = tokens_by_id(json_member(model, "vocab", source), texts.added, source);
  texts.merges = read_merges(model, source);
  BytePairDefinition definition = read_byte_letters(texts, source);
  definition.pattern = pattern;
  definition.nfc = nfc;
  definition.ignore_merges = json_boolean_member(model, "ignore_merges", false, source);
  definition.text_template = read_text_template(document, source);
  return std::make_unique<BytePairTokenizer>(std::move(definition), source);
}

std::string BytePairTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) { return token_letters(id); };
  const std::string pre_tokenizer = pre_tokenizer_text(pattern_);
  const std::string post_processor = write_post_processor(text_template(), byte_level, token_text);
  const std::string model = write_bpe_model({.vocabulary_size = vocabulary_size(),
                                             .merges = merges_,
                                             .token_text = token_text,
                                             .ignore_merges = ignore_merges_});
  return write_tokenizer_json(
      {.added = added_tokens(),
       .normalizer = parts().normalisation.nfc ? R"({"type": "NFC"})" : "null",
       .pre_tokenizer = pre_tokenizer,
       .post_processor = post_processor,
       .decoder = byte_level,
       .model = model});
}

}  // namespace heed
