#include "tokenizer/unigram_json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizer/bpe_json.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/metaspace_json.h"

namespace heed {
namespace {

constexpr const char* known_normaliser_steps =
    "Precompiled, Strip, Lowercase, and Replace of a string or of the regular expression ' {2,}'";

std::unique_ptr<const NormaliserStep> read_replace_step(const Json& step, std::string_view source) {
  const Json& pattern = json_member(step, "pattern", source);
  const std::string& to = json_string_member(step, "content", source);
  const Json* from = find_json_member(pattern, "String");
  if (from != nullptr && from->is_string() && !from->get_ref<const std::string&>().empty()) {
    return make_replace_step(from->get<std::string>(), to);
  }
  const Json* expression = find_json_member(pattern, "Regex");
  if (expression == nullptr || *expression != " {2,}") {
    refuse_step(step, "normalizer", known_normaliser_steps, source);
  }
  return make_collapse_step(to);
}

std::unique_ptr<const NormaliserStep> read_unigram_step(const Json& step, std::string_view source) {
  const std::string& type = step_type(step);
  const std::string where = fmt::format("{}: {}", source, type);
  if (type == "Precompiled") {
    return make_precompiled_step(json_string_member(step, "precompiled_charsmap", where), where);
  }
  if (type == "Strip") {
    return make_strip_step(json_boolean_member(step, "strip_left", true, where),
                           json_boolean_member(step, "strip_right", true, where));
  }
  if (type == "Replace") return read_replace_step(step, source);
  if (type == "Lowercase") return make_lowercase_step();
  refuse_step(step, "normalizer", known_normaliser_steps, source);
}

// Whether the published library loses where a text begins when it replaces its beginning. It does
// for strings of several characters.
bool replaces_several(const Json& step) {
  if (step_type(step) != "Replace") return false;
  const Json* pattern = find_json_member(step, "pattern");
  const Json* from = pattern == nullptr ? nullptr : find_json_member(*pattern, "String");
  if (from == nullptr || !from->is_string()) return false;
  const auto& text = from->get_ref<const std::string&>();
  return !text.empty() && read_utf8(text, 0).length < text.size();
}

void check_prepend_scheme(const Json& document, PrependScheme scheme, std::string_view source) {
  if (scheme != PrependScheme::first) return;
  for (const Json* step : read_steps(document, "normalizer", "normalizers", source)) {
    require(
        !replaces_several(*step), ErrorCode::unsupported,
        "{}: 'prepend_scheme' is first, and the normalizer replaces several characters at once; "
        "supported is one of these",
        source);
  }
}

std::shared_ptr<const NormaliserSteps> read_unigram_normaliser(const Json& document,
                                                               std::string_view source) {
  std::vector<std::unique_ptr<const NormaliserStep>> steps;
  for (const Json* step : read_steps(document, "normalizer", "normalizers", source)) {
    steps.push_back(read_unigram_step(*step, source));
  }
  return std::make_shared<NormaliserSteps>(std::move(steps));
}

void read_unigram_pre_tokenizer(const Json& document, UnigramDefinition& definition,
                                std::string_view source) {
  constexpr const char* known = "Metaspace, alone or behind a WhitespaceSplit";
  bool has_metaspace = false;
  for (const Json* step : read_steps(document, "pre_tokenizer", "pretokenizers", source)) {
    if (step_type(*step) == "WhitespaceSplit" && !has_metaspace) {
      definition.splits_at_white_space = true;
    } else if (step_type(*step) == "Metaspace" && !has_metaspace) {
      definition.prepend = read_prepend_scheme(*step, source);
      definition.splits_words = json_boolean_member(*step, "split", true, source);
      has_metaspace = true;
    } else {
      refuse_step(*step, "pre_tokenizer", known, source);
    }
  }
  require(has_metaspace, ErrorCode::unsupported,
          "{}: the pre_tokenizer of this Unigram model has no step of type Metaspace; supported is "
          "{}",
          source, known);
}

void read_unigram_decoder(const Json& document, UnigramDefinition& definition,
                          std::string_view source) {
  const auto steps = read_steps(document, "decoder", "decoders", source);
  definition.strips_first_word = steps.empty() && definition.prepend != PrependScheme::never;
  bool has_bytes = steps.empty();
  for (const Json* step : steps) {
    const std::string& type = step_type(*step);
    if (type == "Metaspace") {
      definition.strips_first_word = read_prepend_scheme(*step, source) != PrependScheme::never;
    } else if (type == "ByteFallback") {
      has_bytes = true;
    } else if (type == "Strip") {
      require_json_value(*step, "content", {" "}, source);
      require_json_value(*step, "start", {1}, source);
      require_json_value(*step, "stop", {0}, source);
      definition.strips_first_space = true;
    } else if (type == "Replace") {
      const std::string where = fmt::format("{}: Replace of the decoder", source);
      require_json_value(*step, "pattern", {Json({{"String", metaspace_character}})}, where);
      require_json_value(*step, "content", {" "}, where);
    } else if (type != "Fuse") {
      refuse_step(*step, "decoder",
                  "Metaspace, Replace of '▁' by ' ', ByteFallback, Fuse and Strip", source);
    }
  }
  require(has_bytes || !definition.byte_fallback, ErrorCode::unsupported,
          "{}: 'byte_fallback' is true, but the decoder has no step of type ByteFallback", source);
}

// The list of pairs of tokens and scores; a token's index is its id.
void read_unigram_vocabulary(const Json& model, UnigramDefinition& definition,
                             std::string_view source) {
  for (const Json& entry : json_array_member(model, "vocab", source)) {
    const std::size_t id = definition.tokens.size();
    require(entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number(),
            ErrorCode::corrupt_data,
            "{}: the token {} of 'vocab' is {}; expected a text and a score", source, id,
            shown_in_quotes(entry));
    definition.tokens.push_back(entry[0].get<std::string>());
    definition.scores.push_back(entry[1].get<double>());
    require(!definition.tokens.back().empty(), ErrorCode::corrupt_data,
            "{}: the token with the id {} is ''", source, id);
  }
  require(!definition.tokens.empty(), ErrorCode::corrupt_data, "{}: 'vocab' is empty", source);
  place_added_tokens(definition.tokens, definition.added, source);
}

}  // namespace

std::unique_ptr<Tokenizer> read_unigram_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  UnigramDefinition definition;
  definition.steps = read_unigram_normaliser(document, source);
  read_unigram_pre_tokenizer(document, definition, source);
  check_prepend_scheme(document, definition.prepend, source);
  definition.byte_fallback = json_boolean_member(model, "byte_fallback", false, source);
  read_unigram_decoder(document, definition, source);
  definition.text_template = read_text_template(document, source);
  definition.added = read_added_tokens(document, source);
  read_unigram_vocabulary(model, definition, source);
  const Json* unknown = find_json_member(model, "unk_id");
  require(unknown != nullptr, ErrorCode::unsupported,
          "{}: the Unigram model has no 'unk_id': characters without a token would be errors",
          source);
  definition.unknown = static_cast<std::int32_t>(
      json_integer(*unknown, {fmt::format("{}: 'unk_id'", source)}, 0,
                   static_cast<std::int64_t>(definition.scores.size()) - 1));
  return std::make_unique<UnigramTokenizer>(std::move(definition), source);
}

std::string UnigramTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) {
    return definition_.tokens[static_cast<std::size_t>(id)];
  };
  std::string vocabulary_text;
  for (std::size_t id = 0; id < definition_.scores.size(); ++id) {
    vocabulary_text +=
        fmt::format("{}\n      [{}, {}]", id == 0 ? "" : ",", json_quoted(definition_.tokens[id]),
                    Json(definition_.scores[id]).dump());
  }
  const std::string model = fmt::format(
      "{{\n"
      "    \"type\": \"Unigram\",\n"
      "    \"unk_id\": {},\n"
      "    \"byte_fallback\": {},\n"
      "    \"vocab\": [{}\n    ]\n"
      "  }}",
      definition_.unknown, definition_.byte_fallback, vocabulary_text);
  const auto metaspace = [&](PrependScheme scheme) {
    return fmt::format(
        R"({{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{}", "split": {}}})",
        prepend_scheme_name(scheme), definition_.splits_words);
  };
  std::string pre_tokenizer = metaspace(definition_.prepend);
  if (definition_.splits_at_white_space) {
    pre_tokenizer = fmt::format(
        R"({{"type": "Sequence", "pretokenizers": [{{"type": "WhitespaceSplit"}}, {}]}})",
        pre_tokenizer);
  }
  const std::string decoder = fmt::format(
      R"({{"type": "Sequence", "decoders": [{}, {{"type": "ByteFallback"}}, {{"type": "Fuse"}}{}]}})",
      metaspace(definition_.strips_first_word ? PrependScheme::always : PrependScheme::never),
      definition_.strips_first_space
          ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})"
          : "");
  const std::string normalizer = parts().normalisation.steps->json();
  const std::string post_processor = write_post_processor(text_template(), {}, token_text);
  return write_tokenizer_json({.added = added_tokens(),
                               .normalizer = normalizer,
                               .pre_tokenizer = pre_tokenizer,
                               .post_processor = post_processor,
                               .decoder = decoder,
                               .model = model});
}

}  // namespace heed
