#include "tokenizer/metaspace_json.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizer/bpe_json.h"
#include "tokenizer/json_parts.h"

namespace heed {
namespace {

constexpr std::string_view prepend_step = R"({"type": "Prepend", "prepend": "▁"})";
constexpr std::string_view replace_step =
    R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})";

std::vector<const Json*> normalizers(const Json& document, std::string_view source) {
  return read_steps(document, "normalizer", "normalizers", source);
}

std::vector<const Json*> pre_tokenizers(const Json& document, std::string_view source) {
  return read_steps(document, "pre_tokenizer", "pretokenizers", source);
}

bool is_replace(const Json& step, std::string_view from, std::string_view to) {
  return step_type(step) == "Replace" && step.contains("pattern") &&
         step["pattern"] == Json({{"String", from}}) && step.contains("content") &&
         step["content"] == Json(to);
}

// Gemma's, behind a normaliser that has replaced every space: it finds nothing to split at.
bool splits_at_spaces(const Json& step) {
  return step_type(step) == "Split" && step.contains("pattern") &&
         step["pattern"] == Json({{"String", " "}});
}

void read_normaliser(const Json& document, TextNormalisation& normalisation,
                     std::string_view source) {
  for (const Json* step : normalizers(document, source)) {
    if (step_type(*step) == "Prepend" && step->contains("prepend") &&
        (*step)["prepend"] == Json(metaspace_character) && !normalisation.prepend_always) {
      normalisation.prepend_always = true;
    } else if (is_replace(*step, " ", metaspace_character)) {
      normalisation.replaces_spaces = true;
    } else {
      refuse_step(*step, "normalizer", "one Prepend of '▁' and Replace of ' ' by '▁'", source);
    }
  }
}

void read_pre_tokenizer(const Json& document, MetaspaceDefinition& definition,
                        std::string_view source) {
  const auto steps = pre_tokenizers(document, source);
  for (const Json* step : steps) {
    if (definition.normalisation.replaces_spaces && splits_at_spaces(*step)) continue;
    if (step_type(*step) != "Metaspace" || steps.size() > 1) {
      refuse_step(*step, "pre_tokenizer", "one of type Metaspace", source);
    }
    definition.normalisation.prepend_missing = read_prepend_scheme(*step, source);
    definition.splits_words = json_boolean_member(*step, "split", true, source);
  }
}

// Whether the decoder takes the first space away.
bool read_decoder(const Json& document, const MetaspaceDefinition& definition,
                  std::string_view source) {
  const auto steps = read_steps(document, "decoder", "decoders", source);
  if (steps.empty()) return definition.normalisation.prepends();
  bool strips = false;
  for (const Json* step : steps) {
    const std::string& type = step_type(*step);
    if (type == "Metaspace") {
      strips = strips || read_prepend_scheme(*step, source) != PrependScheme::never;
    } else if (type == "Strip") {
      require_json_value(*step, "content", {" "}, source);
      require_json_value(*step, "start", {1, 0}, source);
      require_json_value(*step, "stop", {0}, source);
      strips = strips || json_member(*step, "start", source) == 1;
    } else if (type != "ByteFallback" && type != "Fuse" &&
               !is_replace(*step, metaspace_character, " ")) {
      refuse_step(*step, "decoder",
                  "Replace of '▁' by ' ', Metaspace, ByteFallback, Fuse and Strip", source);
    }
  }
  return strips;
}

std::string normaliser_text(const TextNormalisation& normalisation) {
  if (!normalisation.prepend_always) {
    return std::string(normalisation.replaces_spaces ? replace_step : "null");
  }
  if (!normalisation.replaces_spaces) return std::string(prepend_step);
  return fmt::format(R"({{"type": "Sequence", "normalizers": [{}, {}]}})", prepend_step,
                     replace_step);
}

}  // namespace

PrependScheme read_prepend_scheme(const Json& step, std::string_view source) {
  const std::string where = fmt::format("{}: Metaspace", source);
  const Json* replacement = find_json_member(step, "replacement");
  require(replacement != nullptr && *replacement == Json(metaspace_character),
          ErrorCode::unsupported, "{}: 'replacement' is {}; only '▁' is supported", where,
          replacement == nullptr ? "missing" : shown_in_quotes(*replacement));
  // Older files have only add_prefix_space.
  const bool adds = json_boolean_member(step, "add_prefix_space", true, where);
  if (find_json_member(step, "prepend_scheme") == nullptr) {
    return adds ? PrependScheme::always : PrependScheme::never;
  }
  const std::string& scheme = json_string_member(step, "prepend_scheme", where);
  require(scheme == "first" || scheme == "always" || scheme == "never", ErrorCode::corrupt_data,
          "{}: 'prepend_scheme' is {}; expected first, always or never", where, in_quotes(scheme));
  require(adds || scheme == "never", ErrorCode::corrupt_data,
          "{}: 'prepend_scheme' is {} and 'add_prefix_space' is false", where, in_quotes(scheme));
  if (scheme == "first") return PrependScheme::first;
  return scheme == "always" ? PrependScheme::always : PrependScheme::never;
}

std::string_view prepend_scheme_name(PrependScheme scheme) {
  switch (scheme) {
    case PrependScheme::never: return "never";
    case PrependScheme::first: return "first";
    case PrependScheme::always: return "always";
  }
  fail(ErrorCode::internal, "prepend scheme {}", static_cast<int>(scheme));
}

bool is_metaspace_json(const Json& document, std::string_view source) {
  for (const Json* step : pre_tokenizers(document, source)) {
    if (step_type(*step) == "Metaspace") return true;
  }
  for (const Json* step : normalizers(document, source)) {
    if (is_replace(*step, " ", metaspace_character)) return true;
  }
  return false;
}

std::unique_ptr<Tokenizer> read_metaspace_json(const Json& document, std::string_view source) {
  const Json& model = json_member(document, "model", source);
  check_bpe_model(model, source);
  require_json_value(model, "ignore_merges", {false}, source);
  MetaspaceDefinition definition;
  definition.normalisation.metaspace = true;
  read_normaliser(document, definition.normalisation, source);
  read_pre_tokenizer(document, definition, source);
  definition.strips_first_space = read_decoder(document, definition, source);
  definition.text_template = read_text_template(document, source);
  definition.byte_fallback = json_boolean_member(model, "byte_fallback", false, source);
  definition.fuse_unknown = json_boolean_member(model, "fuse_unk", false, source);
  if (find_json_member(model, "unk_token") != nullptr) {
    definition.unknown = json_string_member(model, "unk_token", source);
  }
  definition.added = read_added_tokens(document, source);
  definition.tokens = tokens_by_id(json_member(model, "vocab", source), definition.added, source);
  definition.merges = read_merges(model, source);
  return std::make_unique<MetaspaceTokenizer>(std::move(definition), source);
}

std::string MetaspaceTokenizer::to_json() const {
  const auto token_text = [this](std::int32_t id) {
    return definition_.tokens[static_cast<std::size_t>(id)];
  };
  const TextNormalisation& normalisation = definition_.normalisation;
  const bool has_pre_tokenizer = definition_.splits_words || !normalisation.replaces_spaces ||
                                 normalisation.prepend_missing != PrependScheme::never;
  const std::string pre_tokenizer = fmt::format(
      R"({{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "{}", "split": {}}})",
      prepend_scheme_name(normalisation.prepend_missing), definition_.splits_words);
  const std::string decoder =
      fmt::format(R"({{"type": "Sequence", "decoders": [)"
                  R"({{"type": "Replace", "pattern": {{"String": "▁"}}, "content": " "}}, )"
                  R"({{"type": "ByteFallback"}}, {{"type": "Fuse"}}{}]}})",
                  definition_.strips_first_space
                      ? R"(, {"type": "Strip", "content": " ", "start": 1, "stop": 0})"
                      : "");
  const std::string normalizer = normaliser_text(normalisation);
  const std::string post_processor = write_post_processor(text_template(), {}, token_text);
  const std::string model =
      write_bpe_model({.vocabulary_size = vocabulary_size(),
                       .merges = merges_,
                       .token_text = token_text,
                       .unknown = definition_.unknown ? json_quoted(*definition_.unknown) : "null",
                       .fuse_unknown = definition_.fuse_unknown,
                       .byte_fallback = definition_.byte_fallback});
  return write_tokenizer_json({.added = added_tokens(),
                               .normalizer = normalizer,
                               .pre_tokenizer = has_pre_tokenizer ? pre_tokenizer : "null",
                               .post_processor = post_processor,
                               .decoder = decoder,
                               .model = model});
}

}  // namespace heed
