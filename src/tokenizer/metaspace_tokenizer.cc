#include "tokenizer/metaspace_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/merger.h"
#include "tokenizer/piecewise.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/words.h"

namespace heed {
namespace {

std::optional<std::int32_t> find_unknown(const MetaspaceDefinition& definition,
                                         std::string_view source) {
  if (!definition.unknown) return std::nullopt;
  const auto found = std::ranges::find(definition.tokens, *definition.unknown);
  require(found != definition.tokens.end() && !found->empty(), ErrorCode::corrupt_data,
          "{}: the unk_token {} is not in the vocabulary", source, in_quotes(*definition.unknown));
  return static_cast<std::int32_t>(found - definition.tokens.begin());
}

TokenizerParts parts_of(const MetaspaceDefinition& definition, std::string_view source) {
  return {
      .vocabulary = Vocabulary(metaspace_token_bytes({.tokens = definition.tokens,
                                                      .added = definition.added,
                                                      .byte_fallback = definition.byte_fallback}),
                               definition.added, source),
      .normalisation = definition.normalisation,
      .text_template = definition.text_template,
      .unknown = find_unknown(definition, source),
      .strips_first_space = definition.strips_first_space};
}

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

// Gemma's, after a normaliser that has replaced every space: it finds nothing to split at.
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

MetaspaceTokenizer::MetaspaceTokenizer(MetaspaceDefinition definition, std::string_view source)
    : Tokenizer(parts_of(definition, source), source), definition_(std::move(definition)) {
  require(definition_.byte_fallback || definition_.unknown, ErrorCode::unsupported,
          "{}: the model has neither byte_fallback nor an unk_token: characters without a token "
          "would disappear",
          source);
  read_tokens(source);
  read_merges(source);
}

void MetaspaceTokenizer::read_tokens(std::string_view source) {
  byte_ids_.fill(-1);
  const auto& tokens = definition_.tokens;
  for (std::size_t index = 0; index < tokens.size(); ++index) {
    const auto id = static_cast<std::int32_t>(index);
    const std::string& token = tokens[index];
    const Utf8Character character = token.empty() ? Utf8Character{} : read_utf8(token, 0);
    if (character.valid && character.length == token.size() && character.code_point != ' ') {
      const bool is_space = token == metaspace_character;
      const std::size_t point = is_space ? ' ' : character.code_point;
      if (point >= character_ids_.size()) character_ids_.resize(point + 1, -1);
      character_ids_[point] = id;
    } else if (definition_.byte_fallback && token.starts_with("<0x")) {
      for (int byte = 0; byte < 256; ++byte) {
        if (token == byte_token_text(byte)) byte_ids_[byte] = id;
      }
    }
  }
  require(find_character(' ') >= 0, ErrorCode::corrupt_data,
          "{}: the vocabulary has no token for {}, the space", source,
          in_quotes(metaspace_character));
  for (int byte = 0; definition_.byte_fallback && byte < 256; ++byte) {
    // Gemma has no <0x09>: a character that is a token needs no bytes.
    const bool is_character = byte < 0x80 && find_character(static_cast<char32_t>(byte)) >= 0;
    require(byte_ids_[byte] >= 0 || is_character, ErrorCode::corrupt_data,
            "{}: the vocabulary has no token {}; byte_fallback needs all 256", source,
            byte_token_text(byte));
  }
}

void MetaspaceTokenizer::read_merges(std::string_view source) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  for (std::size_t id = 0; id < definition_.tokens.size(); ++id) {
    const std::string& token = definition_.tokens[id];
    if (token.empty()) continue;
    require(ids.emplace(token, static_cast<std::int32_t>(id)).second, ErrorCode::corrupt_data,
            "{}: the token {} has two ids", source, in_quotes(token));
  }
  PairMap<char> seen(definition_.merges.size());
  for (std::size_t rank = 0; rank < definition_.merges.size(); ++rank) {
    const auto& [left, right] = definition_.merges[rank];
    const std::string result = left + right;
    const auto find = [&](const std::string& token, std::string_view role) {
      const auto found = ids.find(token);
      require(found != ids.end(), ErrorCode::corrupt_data,
              "{}: merge {}: the {} {} is not in the vocabulary", source, rank, role,
              in_quotes(token));
      require(std::ranges::find(byte_ids_, found->second) == byte_ids_.end() &&
                  found->second != unknown(),
              ErrorCode::unsupported, "{}: merge {} has {} as its {}", source, rank,
              in_quotes(token), role);
      return found->second;
    };
    const MergeRule rule = {find(left, "left part"), find(right, "right part"),
                            find(result, "result")};
    require(seen.insert({rule.left, rule.right}).second, ErrorCode::corrupt_data,
            "{}: merge {} of {} and {} is listed twice", source, rank, in_quotes(left),
            in_quotes(right));
    merges_.push_back(rule);
    const std::string text = with_spaces(result);
    char32_t before = ' ';
    for (std::size_t i = 0; i < text.size();) {
      const Utf8Character character = read_utf8(text, i);
      if (character.code_point == ' ' && before != ' ') before_spaces_.insert(before);
      before = character.code_point;
      i += character.length;
    }
  }
  definition_.merges = {};
  merger_.emplace(byte_ids_, merges_);
}

std::int32_t MetaspaceTokenizer::find_character(char32_t code_point) const {
  return code_point < character_ids_.size() ? character_ids_[code_point] : -1;
}

bool MetaspaceTokenizer::is_boundary(std::string_view text, std::size_t position) const {
  if (position == 0 || position >= text.size()) return true;
  if (text[position] != ' ') return false;
  if (definition_.splits_words) return true;
  if (text[position - 1] == ' ') return false;
  if (before_spaces_.empty()) return true;
  std::size_t start = position - 1;  // of the character before
  while (start > 0 && position - start < 4 && (text[start] & 0xC0) == 0x80) --start;
  const Utf8Character character = read_utf8(text, start);
  const bool ends_here = character.valid && start + character.length == position;
  return !ends_here || !before_spaces_.contains(character.code_point);
}

void MetaspaceTokenizer::append_word(std::string_view word,
                                     std::vector<std::int32_t>& tokens) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  bool after_unknown = false;
  for (std::size_t i = 0; i < word.size();) {
    const Utf8Character character = read_utf8(word, i);
    const std::int32_t id = character.valid ? find_character(character.code_point) : -1;
    if (id >= 0) {
      symbols.push_back(id);
    } else if (definition_.byte_fallback) {
      for (std::size_t byte = i; byte < i + character.length; ++byte) {
        symbols.push_back(byte_ids_[static_cast<unsigned char>(word[byte])]);
      }
    } else if (!after_unknown || !definition_.fuse_unknown) {
      merger_->append_tokens(symbols, tokens);
      symbols.clear();
      tokens.push_back(*unknown());
    }
    after_unknown = id < 0;
    i += character.length;
  }
  merger_->append_tokens(symbols, tokens);
}

void MetaspaceTokenizer::append_words(std::string_view text, WordCache& cache,
                                      std::vector<std::int32_t>& tokens) const {
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    do {
      end = std::min(text.find(' ', end), text.size());
    } while (!is_boundary(text, end) && ++end);
    append_cached(text.substr(begin, end - begin), cache, tokens,
                  [&](std::string_view word) { append_word(word, tokens); });
    begin = end;
  }
}

std::vector<std::int32_t> MetaspaceTokenizer::encode_prepared(const PreparedText& text,
                                                              StopFlag stop) const {
  PieceEncoder encoder;
  encoder.is_boundary = [this](std::string_view whole, std::size_t position) {
    return is_boundary(whole, position);
  };
  encoder.append_tokens = [this](std::string_view part, WordCache& cache,
                                 std::vector<std::int32_t>& tokens) {
    append_words(part, cache, tokens);
  };
  return encode_in_pieces(text, encoder, caches_, stop);
}

std::size_t MetaspaceTokenizer::token_size(std::string_view text, std::size_t position,
                                           std::int32_t id) const {
  if (id != unknown()) return Tokenizer::token_size(text, position, id);
  std::size_t end = position;
  do {
    end += read_utf8(text, end).length;
    if (!definition_.fuse_unknown || end == text.size()) break;
    const Utf8Character next = read_utf8(text, end);
    if (next.valid && find_character(next.code_point) >= 0) break;
  } while (true);
  return end - position;
}

bool MetaspaceTokenizer::may_cut(std::string_view text, std::size_t position) const {
  if (position == 0 || position >= text.size()) return true;
  return text[position] == ' ' && Tokenizer::may_cut(text, position) &&
         !text.substr(0, position).ends_with(metaspace_character) && is_boundary(text, position);
}

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
