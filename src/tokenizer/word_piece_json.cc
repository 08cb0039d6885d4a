#include "tokenizer/word_piece_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizer/bpe_json.h"
#include "tokenizer/config_tokens.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

constexpr std::string_view bert_specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
constexpr std::string_view bert_pre_tokenizer = R"({"type": "BertPreTokenizer"})";

std::optional<BertNormalisation> read_bert_normaliser(const Json& document,
                                                      std::string_view source) {
  const auto steps = read_steps(document, "normalizer", "normalizers", source);
  if (steps.empty()) return std::nullopt;
  for (const Json* step : steps) {
    if (step_type(*step) != "BertNormalizer" || steps.size() > 1) {
      refuse_step(*step, "normalizer", "one of type BertNormalizer", source);
    }
  }
  const Json& step = *steps.front();
  const std::string where = fmt::format("{}: BertNormalizer", source);
  BertNormalisation result;
  result.clean_text = json_boolean_member(step, "clean_text", true, where);
  result.handle_chinese_chars = json_boolean_member(step, "handle_chinese_chars", true, where);
  result.lowercase = json_boolean_member(step, "lowercase", true, where);
  result.strip_accents = json_boolean_member(step, "strip_accents", result.lowercase, where);
  return result;
}

void check_bert_pre_tokenizer(const Json& document, std::string_view source) {
  const auto steps = read_steps(document, "pre_tokenizer", "pretokenizers", source);
  require(!steps.empty(), ErrorCode::unsupported,
          "{}: the pre_tokenizer of this WordPiece model is missing; supported is {}", source,
          bert_pre_tokenizer);
  for (const Json* step : steps) {
    if (step_type(*step) != "BertPreTokenizer") {
      refuse_step(*step, "pre_tokenizer", bert_pre_tokenizer, source);
    }
  }
}

// Whether decode() takes spaces before punctuation back.
bool read_cleanup(const Json& document, std::string_view continuation, std::string_view source) {
  const auto steps = read_steps(document, "decoder", "decoders", source);
  if (steps.empty()) return true;
  for (const Json* step : steps) {
    if (step_type(*step) != "WordPiece" || steps.size() > 1) {
      refuse_step(*step, "decoder", "one of type WordPiece", source);
    }
  }
  const std::string where = fmt::format("{}: the decoder", source);
  require_json_value(*steps.front(), "prefix", {Json(continuation)}, where);
  return json_boolean_member(*steps.front(), "cleanup", true, where);
}

std::vector<std::string> read_token_lines(std::string_view text, std::string_view source) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    require(!line.empty(), ErrorCode::corrupt_data, "{}: line {} is empty; expected a token",
            source, tokens.size() + 1);
    if (!is_valid_utf8(line)) {
      fail(ErrorCode::corrupt_data, "{}: line {} is {}; expected UTF-8", source, tokens.size() + 1,
           in_quotes(line));
    }
    tokens.emplace_back(line);
  }
  return tokens;
}

}  // namespace

std::unique_ptr<Tokenizer> read_word_piece_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  WordPieceDefinition definition;
  definition.normalisation = read_bert_normaliser(document, source);
  check_bert_pre_tokenizer(document, source);
  definition.unknown = json_string_member(model, "unk_token", source);
  if (find_json_member(model, "continuing_subword_prefix") != nullptr) {
    definition.continuation = json_string_member(model, "continuing_subword_prefix", source);
  }
  if (const Json* longest = find_json_member(model, "max_input_chars_per_word")) {
    definition.max_characters_a_word =
        json_integer(*longest, {fmt::format("{}: 'max_input_chars_per_word'", source)}, 0);
  }
  definition.cleans_up = read_cleanup(document, definition.continuation, source);
  definition.text_template = read_text_template(document, source);
  definition.added = read_added_tokens(document, source);
  definition.tokens = tokens_by_id(json_member(model, "vocab", source), definition.added, source);
  return std::make_unique<WordPieceTokenizer>(std::move(definition), source);
}

std::unique_ptr<Tokenizer> read_word_piece_lines(std::string_view text,
                                                 const TokenizerConfig& config,
                                                 std::string_view source) {
  WordPieceDefinition definition;
  BertNormalisation& normalisation = *definition.normalisation;
  normalisation.lowercase = config.boolean("do_lower_case").value_or(true);
  normalisation.strip_accents = config.boolean("strip_accents").value_or(normalisation.lowercase);
  normalisation.handle_chinese_chars = config.boolean("tokenize_chinese_chars").value_or(true);
  definition.tokens = read_token_lines(text, source);
  for (std::size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    if (std::ranges::find(bert_specials, token) == std::end(bert_specials)) continue;
    definition.added.push_back({.id = static_cast<std::int32_t>(id), .content = token});
    if (token == "[CLS]") definition.text_template.before.push_back(static_cast<std::int32_t>(id));
    if (token == "[SEP]") definition.text_template.after.push_back(static_cast<std::int32_t>(id));
  }
  definition.added =
      with_config_tokens(std::move(definition.added), config, find_among(definition.tokens));
  place_added_tokens(definition.tokens, definition.added, config.source());
  definition.text_template = with_config_template(std::move(definition.text_template), config,
                                                  find_among(definition.tokens));
  return std::make_unique<WordPieceTokenizer>(std::move(definition), source);
}

std::string WordPieceTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) {
    return definition_.tokens[static_cast<std::size_t>(id)];
  };
  std::string vocabulary_text;
  for (const std::string& token : definition_.tokens) {
    const std::ptrdiff_t id = &token - definition_.tokens.data();
    if (token.empty()) continue;
    vocabulary_text +=
        fmt::format("{}\n      {}: {}", vocabulary_text.empty() ? "" : ",", json_quoted(token), id);
  }
  const std::string model = fmt::format(
      "{{\n"
      "    \"type\": \"WordPiece\",\n"
      "    \"unk_token\": {},\n"
      "    \"continuing_subword_prefix\": {},\n"
      "    \"max_input_chars_per_word\": {},\n"
      "    \"vocab\": {{{}\n    }}\n"
      "  }}",
      json_quoted(definition_.unknown), json_quoted(definition_.continuation),
      definition_.max_characters_a_word, vocabulary_text);
  const std::string normalizer = parts().normalisation.steps->json();
  const std::string post_processor = write_post_processor(text_template(), {}, token_text);
  const std::string decoder =
      fmt::format(R"({{"type": "WordPiece", "prefix": {}, "cleanup": {}}})",
                  json_quoted(definition_.continuation), definition_.cleans_up);
  return write_tokenizer_json({.added = added_tokens(),
                               .normalizer = normalizer,
                               .pre_tokenizer = bert_pre_tokenizer,
                               .post_processor = post_processor,
                               .decoder = decoder,
                               .model = model});
}

}  // namespace heed
